//! OpenAI Chat Completions, and the servers that call themselves compatible with it.

mod decode;
mod encode;
mod stream;
mod stream_encode;

pub use decode::{decode_history, decode_reply};
pub(crate) use encode::{BETWEEN, signature_stays};
pub use encode::{encode_history, encode_reply};
pub use stream::Assembler;
pub use stream_encode::Encoder;
