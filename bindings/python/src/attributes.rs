//! Flags and expiry as they come from Python.

use hashmere::{Attributes, Ttl};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::time::Duration;

/// Latest expiry in milliseconds since 1970 that a record can have.
const LATEST_MS: f64 = ((1u64 << 48) - 1) as f64;

/// Flags and expiry from the arguments `ttl`, `expires_at` and `flags`. `None`: none was given.
pub fn attributes(
    ttl: Option<&Bound<'_, PyAny>>,
    expires_at: Option<&Bound<'_, PyAny>>,
    flags: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Attributes>> {
    let (ttl, expires_at) = (ttl.filter(|v| !v.is_none()), expires_at.filter(|v| !v.is_none()));
    if ttl.is_none() && expires_at.is_none() && flags.is_none() {
        return Ok(None);
    }
    let flags = flags.map_or(Ok(0), flags_of)?;
    Ok(Some(Attributes { flags, ttl: expiry(ttl, expires_at)?, ..Attributes::NONE }))
}

/// The same where none means neither flags nor expiry.
pub fn given(
    ttl: Option<&Bound<'_, PyAny>>,
    expires_at: Option<&Bound<'_, PyAny>>,
    flags: Option<&Bound<'_, PyAny>>,
) -> PyResult<Attributes> {
    Ok(attributes(ttl, expires_at, flags)?.unwrap_or(Attributes::NONE))
}

/// An expiry from the arguments `ttl` and `expires_at`.
pub fn expiry(ttl: Option<&Bound<'_, PyAny>>, expires_at: Option<&Bound<'_, PyAny>>) -> PyResult<Ttl> {
    match (ttl, expires_at) {
        (Some(_), Some(_)) => Err(PyTypeError::new_err("give ttl or expires_at, not both")),
        (Some(ttl), None) => after(ttl),
        (None, Some(time)) => at(time),
        (None, None) => Ok(Ttl::Never),
    }
}

fn after(ttl: &Bound<'_, PyAny>) -> PyResult<Ttl> {
    let seconds = seconds(ttl, "total_seconds", "ttl must be a number of seconds or a timedelta")?;
    if seconds == f64::INFINITY {
        return Ok(Ttl::Never);
    }
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!("ttl must not be negative, and is {seconds}")));
    }
    // Half of what can be stored: today and this together are within it.
    if seconds * 1000.0 > LATEST_MS / 2.0 {
        return Err(PyOverflowError::new_err(format!("ttl is too long: {seconds} s; leave it out for no expiry")));
    }
    Ok(Ttl::After(Duration::from_secs_f64(seconds)))
}

fn at(time: &Bound<'_, PyAny>) -> PyResult<Ttl> {
    let seconds = seconds(time, "timestamp", "expires_at must be a time in seconds since 1970 or a datetime")?;
    let ms = seconds * 1000.0;
    if ms.is_nan() || !(0.0..=LATEST_MS).contains(&ms) {
        return Err(PyValueError::new_err(format!("expires_at is out of range: {seconds}")));
    }
    Ok(Ttl::At(ms as u64))
}

/// A number, or what the method of an object says.
fn seconds(object: &Bound<'_, PyAny>, method: &str, must: &str) -> PyResult<f64> {
    if let Ok(Some(method)) = object.getattr_opt(method) {
        return method.call0()?.extract();
    }
    object.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(object.py()) {
            crate::bytes::refused(object, must)
        } else {
            error
        }
    })
}

/// 32 bits.
pub fn flags_of(flags: &Bound<'_, PyAny>) -> PyResult<u32> {
    flags.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(flags.py()) {
            crate::bytes::refused(flags, "flags must be an int")
        } else {
            PyOverflowError::new_err("flags must be from 0 to 4294967295")
        }
    })
}

/// An unsigned argument of 64 bits.
pub fn unsigned(number: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    number.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(number.py()) {
            crate::bytes::refused(number, &format!("{name} must be an int"))
        } else {
            PyOverflowError::new_err(format!("{name} must be from 0 to 18446744073709551615"))
        }
    })
}
