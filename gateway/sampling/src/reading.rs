//! A column's value.

use std::sync::Arc;

/// A column's value in its type; a waveform is packed.
#[derive(Clone, Debug)]
pub enum Reading {
    Missing,
    Bit(bool),
    Whole(i64),
    Float(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
}

impl Reading {
    /// The value of a number or bit.
    fn number(&self) -> Option<f64> {
        match *self {
            Self::Bit(bit) => Some(f64::from(u8::from(bit))),
            Self::Whole(number) => Some(number as f64),
            Self::Float(number) => Some(number),
            Self::Missing | Self::Text(_) | Self::Bytes(_) => None,
        }
    }
}

/// NaN differs from itself.
impl PartialEq for Reading {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) => true,
            (Self::Whole(one), Self::Whole(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            _ => matches!((self.number(), other.number()), (Some(one), Some(other)) if one == other),
        }
    }
}

/// The smallest change of a reading that counts: in its unit, or relative to the previous reading.
#[derive(Clone, Copy, Debug)]
pub struct Deadband {
    pub distance: f64,
    pub relative: bool,
}

/// Whether a reading counts as changed. A change from or to a missing reading, NaN or infinity always does.
pub fn moved(deadband: Option<Deadband>, before: &Reading, after: &Reading) -> bool {
    before != after
        && match (deadband, before.number(), after.number()) {
            (Some(Deadband { distance, relative }), Some(number), Some(other)) => {
                let distance = if relative { distance * number.abs() } else { distance };
                let step = match (before, after) {
                    (Reading::Whole(one), Reading::Whole(other)) => one.abs_diff(*other) as f64,
                    _ => (other - number).abs(),
                };
                // NaN is within no distance, and every number would be within an infinite one
                !(distance.is_finite() && step <= distance)
            }
            _ => true,
        }
}
