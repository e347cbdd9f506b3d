"""What every suite shares: the server under test, the contract oracle, identities, and waiting with a deadline."""
