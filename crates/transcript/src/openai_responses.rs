//! OpenAI Responses.

mod decode;
mod encode;
mod stream;
mod stream_encode;

pub use decode::{decode_history, decode_reply};
pub(crate) use encode::is_model_item;
pub use encode::{encode_history, encode_reply};
pub use stream::Assembler;
pub use stream_encode::Encoder;
