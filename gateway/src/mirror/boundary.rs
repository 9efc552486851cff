//! Finds the beginnings and ends of messages in a stream of packets that is passed on unchanged.

use crate::tds::packet::{Status, HEADER};

/// Follows a stream from packet to packet and detects whether it is between two messages.
#[derive(Debug, Default)]
pub struct Boundary {
    header: [u8; HEADER],
    have: usize,
    /// Bytes of the packet's body that are still to come.
    left: usize,
    inside: bool,
    /// The stream is not packets, as under TLS.
    lost: bool,
    /// Messages that have ended.
    pub messages: u64,
}

impl Boundary {
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.lost {
            if self.left > 0 {
                let step = self.left.min(bytes.len());
                self.left -= step;
                bytes = bytes.get(step..).unwrap_or(&[]);
                self.end_of_packet();
                continue;
            }
            let Some((first, rest)) = bytes.split_first() else { return };
            bytes = rest;
            if let Some(byte) = self.header.get_mut(self.have) {
                *byte = *first;
            }
            self.have += 1;
            if self.have == HEADER {
                self.have = 0;
                self.inside = true;
                let length = usize::from(u16::from_be_bytes([self.header[2], self.header[3]]));
                match length.checked_sub(HEADER) {
                    Some(left) => self.left = left,
                    None => self.lost = true,
                }
                self.end_of_packet();
            }
        }
    }

    fn end_of_packet(&mut self) {
        if self.left == 0 && self.inside && self.header[1] & Status::LAST.bits() != 0 {
            self.inside = false;
            self.messages += 1;
        }
    }

    /// Between two messages, before any byte of the next.
    pub fn is_at_rest(&self) -> bool {
        !self.lost && !self.inside && self.have == 0 && self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(last: bool, body: usize) -> Vec<u8> {
        let mut bytes = vec![4, u8::from(last)];
        bytes.extend(((body + HEADER) as u16).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(vec![9; body]);
        bytes
    }

    proptest! {
        #[test]
        fn however_the_bytes_arrive(bodies in proptest::collection::vec((any::<bool>(), 0usize..50), 1..8),
                                    size in 1usize..40) {
            let wire: Vec<u8> = bodies.iter().flat_map(|(last, body)| packet(*last, *body)).collect();
            let mut boundary = Boundary::default();
            prop_assert!(boundary.is_at_rest());
            for part in wire.chunks(size) {
                boundary.pass(part);
            }
            prop_assert_eq!(boundary.messages, bodies.iter().filter(|(last, _)| *last).count() as u64);
            prop_assert_eq!(boundary.is_at_rest(), bodies.last().is_some_and(|(last, _)| *last));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Boundary::default().pass(&bytes);
        }
    }
}
