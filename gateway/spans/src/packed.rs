//! Unpacks the numbers of closed blocks. `history/packing.py` packs them and describes the forms.

use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

const PLAIN: u8 = 0;
const SAME: u8 = 1;
const FEW: u8 = 2;
const PLANES: u8 = 3;
const DISTANCES: u8 = 4;

/// Numbers whose planes are put together at once: they stay in the fastest cache.
const TOGETHER: usize = 64;

/// The most bytes that LZ4 makes of one: a byte of a length stands for so many. No memory is taken for more.
const MOST_OF_A_BYTE: usize = 255;

/// Unpacks contents one after another, with the same memory.
pub struct Unpacker {
    zstd: Decompressor<'static>,
    planes: Vec<u8>,
    rest: Vec<u8>,
}

impl Unpacker {
    pub fn new() -> std::io::Result<Unpacker> {
        Ok(Unpacker { zstd: Decompressor::new()?, planes: Vec::new(), rest: Vec::new() })
    }

    /// Fills `out` with little-endian numbers of `width` bytes. None: these bytes are not so many packed numbers.
    pub fn fill(&mut self, form: u8, body: &[u8], width: usize, out: &mut [u8]) -> Option<()> {
        match (form, width) {
            _ if out.is_empty() => Some(()),
            (DISTANCES, 8) => self.distances(body, out),
            (_, 1) => self.numbers::<1>(form, body, out),
            (_, 2) => self.numbers::<2>(form, body, out),
            (_, 4) => self.numbers::<4>(form, body, out),
            (_, 8) => self.numbers::<8>(form, body, out),
            _ => None,
        }
    }

    fn numbers<const W: usize>(&mut self, form: u8, body: &[u8], out: &mut [u8]) -> Option<()> {
        let (numbers, []) = out.as_chunks_mut::<W>() else { return None };
        match (form, W) {
            (PLAIN, _) => numbers.copy_from_slice(body.as_chunks::<W>().0.get(..numbers.len())?),
            (SAME, _) => numbers.fill(*body.first_chunk::<W>()?),
            (FEW, _) => {
                let (last, body) = body.split_first()?;
                let (known, compressed) = body.split_at_checked((usize::from(*last) + 1) * W)?;
                let (known, _) = known.as_chunks::<W>();
                if get_frame_content_size(compressed).ok()? != Some(numbers.len() as u64) {
                    return None;
                }
                self.planes.resize(numbers.len(), 0);
                let length = self.zstd.decompress_to_buffer(compressed, &mut self.planes[..]).ok()?;
                if length != numbers.len() {
                    return None;
                }
                for (number, index) in numbers.iter_mut().zip(&self.planes) {
                    *number = *known.get(usize::from(*index))?;
                }
            }
            (PLANES, 1) => {
                let length = self.zstd.decompress_to_buffer(body, out).ok()?;
                return (length == out.len()).then_some(());
            }
            (PLANES, _) => {
                if numbers.len() * W / MOST_OF_A_BYTE > body.len() {
                    return None;
                }
                self.planes.resize(numbers.len() * W, 0);
                let most = i32::try_from(self.planes.len()).ok()?;
                let length = lz4::block::decompress_to_buffer(body, Some(most), &mut self.planes).ok()?;
                if length != self.planes.len() {
                    return None;
                }
                together(&self.planes, numbers);
            }
            _ => return None,
        }
        Some(())
    }

    /// Times: the first one, and the distances of the others above the least distance.
    fn distances(&mut self, body: &[u8], out: &mut [u8]) -> Option<()> {
        let (width @ (1 | 2 | 4 | 8), body) =
            body.split_first_chunk().map(|([width], body)| (*width, body))?
        else {
            return None;
        };
        let (begin, body) = body.split_first_chunk()?;
        let (least, body) = body.split_first_chunk()?;
        let (form, body) = body.split_first()?;
        let (mut time, least) = (i64::from_le_bytes(*begin), i64::from_le_bytes(*least));
        let (times, []) = out.as_chunks_mut::<8>() else { return None };
        let (first, times) = times.split_first_mut()?;
        *first = *begin;
        let width = usize::from(width);
        let mut rest = std::mem::take(&mut self.rest);
        rest.resize(times.len().checked_mul(width)?, 0);
        // distances of distances are not made, and would nest without end
        let filled = if *form == DISTANCES { None } else { self.fill(*form, body, width, &mut rest) };
        let mut add = |times: &mut dyn Iterator<Item = (&mut [u8; 8], i64)>| {
            for (slot, rest) in times {
                time = time.wrapping_add(least).wrapping_add(rest);
                *slot = time.to_le_bytes();
            }
        };
        let times = times.iter_mut();
        match width {
            1 => add(&mut times.zip(rest.iter().map(|rest| i64::from(*rest)))),
            2 => add(&mut times.zip(rest.as_chunks().0.iter().map(|rest| u16::from_le_bytes(*rest).into()))),
            4 => add(&mut times.zip(rest.as_chunks().0.iter().map(|rest| u32::from_le_bytes(*rest).into()))),
            _ => add(&mut times.zip(rest.as_chunks().0.iter().map(|rest| i64::from_le_bytes(*rest)))),
        }
        self.rest = rest;
        filled
    }
}

/// Puts numbers together: `planes` has the lowest byte of all numbers first.
fn together<const W: usize>(planes: &[u8], numbers: &mut [[u8; W]]) {
    let n = numbers.len();
    for (index, some) in numbers.chunks_mut(TOGETHER).enumerate() {
        let begin = index * TOGETHER;
        let mut joined = [0u64; TOGETHER];
        for plane in 0..W {
            let bytes = &planes[plane * n + begin..plane * n + begin + some.len()];
            for (number, byte) in joined.iter_mut().zip(bytes) {
                *number |= u64::from(*byte) << (8 * plane);
            }
        }
        for (number, joined) in some.iter_mut().zip(joined) {
            number.copy_from_slice(&joined.to_le_bytes()[..W]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(form: u8, body: &[u8], width: usize, n: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; n * width];
        Unpacker::new().unwrap().fill(form, body, width, &mut out).map(|()| out)
    }

    #[test]
    fn planes_become_numbers() {
        let numbers: Vec<[u8; 8]> = (0..150u64).map(|n| (n * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
        let planes: Vec<u8> = (0..8).flat_map(|plane| numbers.iter().map(move |n| n[plane])).collect();
        let body = lz4::block::compress(&planes, None, false).unwrap();
        assert_eq!(of(PLANES, &body, 8, 150).unwrap(), numbers.as_flattened());
        for (width, n) in [(8, 149), (8, 151), (4, 150), (1, 150), (3, 400)] {
            assert!(of(PLANES, &body, width, n).is_none());
        }
    }

    #[test]
    fn times_are_sums_of_distances() {
        let head = |width: u8| [&[width][..], &100i64.to_le_bytes(), &(-3i64).to_le_bytes()].concat();
        let times = |width, rest: &[u8], n| of(DISTANCES, &[&head(width)[..], rest].concat(), 8, n);
        let expected = |times: &[i64]| times.iter().flat_map(|time| time.to_le_bytes()).collect::<Vec<_>>();
        assert_eq!(times(1, &[PLAIN, 5, 255], 3).unwrap(), expected(&[100, 102, 354]));
        assert_eq!(times(2, &[SAME, 0, 1], 3).unwrap(), expected(&[100, 353, 606]));
        assert_eq!(times(1, &[PLAIN], 1).unwrap(), expected(&[100]));
        assert!(times(1, &[PLAIN, 5], 3).is_none() && times(3, &[SAME, 0, 0, 0], 3).is_none());
        assert!(times(8, &[&[DISTANCES][..], &head(8), &[SAME; 9]].concat(), 3).is_none());
    }

    #[test]
    fn other_bytes_are_refused() {
        let none = zstd::bulk::compress(&[0, 1, 2], 1).unwrap();
        let few = |most: u8| [&[most][..], &[7; 6][..usize::from(most + 1) * 2], &none].concat();
        assert_eq!(of(FEW, &few(2), 2, 3).unwrap(), [7; 6]);
        assert!(of(FEW, &few(1), 2, 3).is_none() && of(FEW, &few(2), 2, 4).is_none());
        for form in 0..=u8::MAX {
            assert!(of(form, &[], 8, 1).is_none() && of(form, &[], 8, 0).is_some());
        }
    }
}
