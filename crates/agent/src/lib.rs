//! The SDK that agents are written with.
