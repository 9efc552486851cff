//! The values of a Bind message.

use crate::convert::Packed;
use bytes::Bytes;

/// Each parameter with its length. Long waveforms remain in the client's format until they are sent on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    bytes: Bytes,
    /// Each with its position in `bytes`, in order.
    waveforms: Vec<(usize, Packed)>,
}

impl From<Bytes> for Values {
    fn from(bytes: Bytes) -> Values {
        Values { bytes, waveforms: Vec::new() }
    }
}

impl Values {
    pub fn with_waveforms(bytes: Bytes, waveforms: Vec<(usize, Packed)>) -> Values {
        Values { bytes, waveforms }
    }

    /// Their length in the message.
    pub fn length(&self) -> usize {
        self.bytes.len() + self.waveforms.iter().map(|(_, waveform)| waveform.array_len()).sum::<usize>()
    }

    /// The values before the first waveform.
    pub fn beginning(&self) -> &[u8] {
        self.between(0, self.waveforms.first().map(|(offset, _)| *offset))
    }

    /// The waveforms, each with the bytes before it.
    pub fn waveforms(&self) -> impl Iterator<Item = (&[u8], &Packed)> {
        let mut from = 0;
        self.waveforms.iter().map(move |(offset, waveform)| {
            let before = self.between(from, Some(*offset));
            from = *offset;
            (before, waveform)
        })
    }

    /// The bytes after the last waveform.
    pub fn end(&self) -> &[u8] {
        self.between(self.waveforms.last().map_or(0, |(offset, _)| *offset), None)
    }

    fn between(&self, from: usize, to: Option<usize>) -> &[u8] {
        self.bytes.get(from..to.unwrap_or(self.bytes.len())).unwrap_or_default()
    }
}
