-- What the delivery ledger needs to know. An attempt that lapsed: its agent went away, or fell silent, while it ran.
ALTER TABLE attempts ADD COLUMN lapsed_at BIGINT;
