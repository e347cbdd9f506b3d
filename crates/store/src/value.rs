//! Values on their way into a statement ([`Param`], [`params!`](crate::params)) and out of one ([`Row`], [`Value`]).

use bandstand_wire::ids::{
    BulkDeletionId, ContactId, ContactRequestId, ExecutionId, FileId, IdentityId, KeyId, MemoryId, MessageId,
    OrganizationId, RoomId, TaskId,
};
use uuid::Uuid;

use crate::error::StoreError;

/// A value bound to a placeholder. Usually made by [`params!`](crate::params).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param<'a> {
    /// NULL of any type.
    Null,
    /// A number; flags are 0 and 1.
    Int(i64),
    /// Text. PostgreSQL cannot store the character NUL, so both engines refuse it.
    Text(&'a str),
    /// An id: 16 bytes on SQLite, `UUID` on PostgreSQL.
    Id(Uuid),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// The parameters of a statement, each turned into a [`Param`]:
/// `tx.query(SQL, params![room, sequence, name.as_str(), None::<i64>])`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[ $( $crate::Param::from($value) ),* ][..] };
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Param<'_> {
    fn from(value: i32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<u32> for Param<'_> {
    fn from(value: u32) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<bool> for Param<'_> {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl From<Uuid> for Param<'_> {
    fn from(value: Uuid) -> Self {
        Self::Id(value)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Param<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a> From<&'a Vec<u8>> for Param<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

macro_rules! from_ids {
    ($($id:ident),*) => { $(
        impl From<$id> for Param<'_> {
            fn from(value: $id) -> Self {
                Self::Id(value.0)
            }
        }
    )* };
}

from_ids!(
    ContactId,
    ContactRequestId,
    FileId,
    RoomId,
    MessageId,
    IdentityId,
    KeyId,
    ExecutionId,
    BulkDeletionId,
    MemoryId,
    OrganizationId,
    TaskId
);

impl Param<'_> {
    /// Refuses what one of the databases cannot store, so that both behave alike.
    pub(crate) fn check(self) -> Result<(), StoreError> {
        match self {
            Self::Text(text) if text.contains('\0') => {
                Err(StoreError::Bug("a text holds the character NUL, which PostgreSQL cannot store".to_owned()))
            }
            Self::Null | Self::Int(_) | Self::Text(_) | Self::Id(_) | Self::Bytes(_) => Ok(()),
        }
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// An id. SQLite has no type for it: there, each value of 16 bytes is one.
    Id(Uuid),
}

impl Value {
    /// The same on its way into a statement.
    pub(crate) fn as_param(&self) -> Param<'_> {
        match self {
            Self::Null => Param::Null,
            Self::Int(value) => Param::Int(*value),
            Self::Text(value) => Param::Text(value),
            Self::Bytes(value) => Param::Bytes(value),
            Self::Id(value) => Param::Id(*value),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Int(_) => "a number",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Id(_) => "an id",
        }
    }
}

/// A row of a result. Columns are named by their position in the SELECT, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    values: Box<[Value]>,
}

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self { values: values.into_boxed_slice() }
    }

    pub(crate) fn into_values(self) -> Vec<Value> {
        self.values.into_vec()
    }

    fn value(&self, column: usize) -> Result<&Value, StoreError> {
        self.values.get(column).ok_or_else(|| no_column(column, self.values.len()))
    }

    /// A number.
    pub fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.opt_int(column)?.ok_or_else(|| is_null(column))
    }

    /// A number or NULL.
    pub fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Int(value) => Ok(Some(*value)),
            other => Err(mismatch(column, "a number", other)),
        }
    }

    /// A flag, stored as 0 or 1.
    pub fn bool(&self, column: usize) -> Result<bool, StoreError> {
        match self.int(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(StoreError::Decode(format!("column {column} is {other}, not a flag of 0 or 1"))),
        }
    }

    /// Text. [`take_text`](Self::take_text) moves it out instead.
    pub fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.opt_text(column)?.ok_or_else(|| is_null(column))
    }

    /// Text or NULL.
    pub fn opt_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Text(value) => Ok(Some(value)),
            other => Err(mismatch(column, "text", other)),
        }
    }

    /// Moves a text out of the row without copying it; NULL stays behind.
    pub fn take_text(&mut self, column: usize) -> Result<String, StoreError> {
        self.take_opt_text(column)?.ok_or_else(|| is_null(column))
    }

    /// Moves a text or NULL out of the row without copying it; NULL stays behind.
    pub fn take_opt_text(&mut self, column: usize) -> Result<Option<String>, StoreError> {
        self.opt_text(column)?;
        let count = self.values.len();
        let slot = self.values.get_mut(column).ok_or_else(|| no_column(column, count))?;
        match std::mem::replace(slot, Value::Null) {
            Value::Text(value) => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    /// An id; wrap it: `row.id(0)?.into()`.
    pub fn id(&self, column: usize) -> Result<Uuid, StoreError> {
        self.opt_id(column)?.ok_or_else(|| is_null(column))
    }

    /// An id or NULL.
    pub fn opt_id(&self, column: usize) -> Result<Option<Uuid>, StoreError> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Id(value) => Ok(Some(*value)),
            other => Err(mismatch(column, "an id", other)),
        }
    }

    /// Bytes.
    pub fn bytes(&self, column: usize) -> Result<&[u8], StoreError> {
        self.opt_bytes(column)?.ok_or_else(|| is_null(column))
    }

    /// Bytes or NULL.
    pub fn opt_bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Bytes(value) => Ok(Some(value)),
            Value::Id(value) => Ok(Some(value.as_bytes())),
            other => Err(mismatch(column, "bytes", other)),
        }
    }
}

fn is_null(column: usize) -> StoreError {
    StoreError::Decode(format!("column {column} is NULL"))
}

fn no_column(column: usize, count: usize) -> StoreError {
    StoreError::Decode(format!("the row has no column {column}; it has {count}"))
}

fn mismatch(column: usize, wanted: &str, found: &Value) -> StoreError {
    StoreError::Decode(format!("column {column} is {}, not {wanted}", found.kind()))
}
