//! One conversation, any model: the canonical transcript and its conversions.
