//! Conversions between SQLite's values, in which the queries are written, and PostgreSQL's.

use std::borrow::Cow;
use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use rusqlite::types::{ToSqlOutput, Type as Kind, Value, ValueRef};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::storage::Error;
use crate::storage::db::Params;

/// The replacement for NUL, which is allowed in SQLite's text and in callers', but not in PostgreSQL's.
const NO_NUL: &str = "\u{fffd}";

/// Parameters as owned values.
pub(in crate::storage) fn owned_params(params: Params<'_>) -> Result<Vec<Value>, Error> {
    let value = |param: &&dyn rusqlite::ToSql| match param.to_sql()? {
        ToSqlOutput::Borrowed(value) => Ok(Value::try_from(value)?),
        ToSqlOutput::Owned(value) => Ok(value),
        other => Err(rusqlite::Error::ToSqlConversionFailure(format!("no value: {other:?}").into())),
    };
    Ok(params.iter().map(value).collect::<Result<_, _>>()?)
}

/// The value of a column.
pub(in crate::storage) fn column_value(row: &Row, column: usize) -> rusqlite::Result<ValueRef<'_>> {
    let found = row.try_get(column);
    found
        .map(|SqlValue(value)| value)
        .map_err(|cause| rusqlite::Error::FromSqlConversionFailure(column, Kind::Null, Box::new(cause)))
}

/// A value received from the database.
struct SqlValue<'a>(ValueRef<'a>);

impl<'a> FromSql<'a> for SqlValue<'a> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(match *of {
            Type::INT8 => ValueRef::Integer(i64::from_sql(of, raw)?),
            Type::BOOL => ValueRef::Integer(bool::from_sql(of, raw)?.into()),
            Type::BYTEA => ValueRef::Blob(raw),
            _ => ValueRef::Text(raw),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(ValueRef::Null))
    }

    fn accepts(of: &Type) -> bool {
        matches!(*of, Type::INT8 | Type::BOOL | Type::BYTEA | Type::TEXT)
    }
}

/// A value sent to the database.
#[derive(Debug)]
pub(super) struct SqlParam(pub(super) Value);

impl ToSql for SqlParam {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (&self.0, of) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT8) => out.put_i64(*number),
            (Value::Integer(number), &Type::BOOL) => out.put_u8(u8::from(*number != 0)),
            (Value::Text(text), &Type::TEXT) => out.put_slice(without_nul(text).as_bytes()),
            (Value::Blob(bytes), &Type::BYTEA) => out.put_slice(bytes),
            (value, of) => return Err(format!("a value of {:?} for {of}", value.data_type()).into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', NO_NUL)) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::super::testing;
    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL, which `cargo test` may not ask for, named by MK_TEST_DATABASE_URL; runs in .ci/run"]
    fn values_survive_a_round_trip_except_for_nul() {
        let database = testing::database().expect("MK_TEST_DATABASE_URL");
        let sent = params![-7_i64, "a\0ü'?1", vec![0_u8, 255], true, None::<String>];
        let sql = "SELECT CAST(?1 AS BIGINT), CAST(?2 AS TEXT), CAST(?3 AS BYTEA), CAST(?4 AS BOOLEAN),
            CAST(?5 AS TEXT)";
        let rows = database.read(|session| session.query(sql, sent)).unwrap();
        let found = |column| column_value(&rows[0], column).unwrap();
        assert_eq!(found(0), ValueRef::Integer(-7));
        assert_eq!(found(1), ValueRef::Text("a\u{fffd}ü'?1".as_bytes()));
        assert_eq!(found(2), ValueRef::Blob(&[0, 255]));
        assert_eq!(found(3), ValueRef::Integer(1));
        assert_eq!(found(4), ValueRef::Null);
        database.read(|session| session.query("SELECT CAST(?1 AS BIGINT)", params!["x"])).unwrap_err();
    }
}
