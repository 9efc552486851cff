//! Summaries of time spans, column by column, and the numbers of closed blocks. NULL and NaN are counted separately.

mod loess;
mod packed;
mod whole;

use std::ops::Range;

pub use packed::Unpacker;
pub use whole::{figures, Figure};

/// A value for each span, column by column. If `n` is 0 the floats are NaN.
#[derive(Debug, Default)]
pub struct Spans {
    pub n: Vec<i64>,
    pub min: Vec<f64>,
    pub max: Vec<f64>,
    pub mean: Vec<f64>,
    pub first: Vec<f64>,
    pub last: Vec<f64>,
    /// The sums of the squared distances from the mean.
    pub squares: Vec<f64>,
    pub nans: Vec<i64>,
    pub nulls: Vec<i64>,
}

/// Summarises columns of `rows` values, one after another, as the bytes of doubles; `nulls` has a byte for each value,
/// not 0 for a NULL. `starts` are the first rows of the spans, ascending from 0. None: the lengths do not fit.
pub fn of_columns(values: &[u8], nulls: Option<&[u8]>, rows: usize, starts: &[usize]) -> Option<Spans> {
    let (values, rest) = values.as_chunks::<8>();
    let fit = rest.is_empty()
        && are_starts(starts, rows)
        && values.len().is_multiple_of(rows)
        && nulls.is_none_or(|nulls| nulls.len() == values.len());
    if !fit {
        return None;
    }
    let mut spans = Spans::with_capacity(values.len() / rows * starts.len());
    let mut column = Vec::with_capacity(rows);
    let mut is_there = vec![true; rows];
    for (number, bytes) in values.chunks(rows).enumerate() {
        column.clear();
        column.extend(bytes.iter().map(|bytes| f64::from_le_bytes(*bytes)));
        if let Some(nulls) = nulls {
            let nulls = nulls.get(number * rows..(number + 1) * rows)?;
            is_there.clear();
            is_there.extend(nulls.iter().map(|null| *null == 0));
        }
        let ends = starts.iter().skip(1).copied().chain([rows]);
        for (begin, end) in starts.iter().copied().zip(ends) {
            spans.add(column.get(begin..end)?, is_there.get(begin..end)?);
        }
    }
    Some(spans)
}

/// Combines spans of columns, one after another, each of `rows` spans. `starts` are the first spans of each longer one,
/// ascending from 0. None: the lengths do not fit.
pub fn combined(parts: &Spans, rows: usize, starts: &[usize]) -> Option<Spans> {
    let count = parts.n.len();
    if !are_starts(starts, rows) || !count.is_multiple_of(rows) {
        return None;
    }
    let mut spans = Spans::with_capacity(count / rows * starts.len());
    for column in (0..count).step_by(rows) {
        let ends = starts.iter().skip(1).copied().chain([rows]);
        for (begin, end) in starts.iter().copied().zip(ends) {
            spans.combine(parts, column + begin..column + end);
        }
    }
    Some(spans)
}

/// The index of the first time of each bin: bins have `width`, which is not 0, and are counted from 0.
pub fn bin_starts(times: &[[u8; 8]], width: i64) -> Vec<usize> {
    let (mut begin, mut last, mut starts) = (i64::MAX, i64::MIN, Vec::new());
    for (index, time) in times.iter().enumerate() {
        let time = i64::from_le_bytes(*time);
        if time < begin || time > last {
            let within = time.rem_euclid(width);
            (begin, last) = (time.saturating_sub(within), time.saturating_add(width - 1 - within));
            starts.push(index);
        }
    }
    starts
}

fn are_starts(starts: &[usize], rows: usize) -> bool {
    starts.first() == Some(&0)
        && starts.windows(2).all(|pair| pair[0] < pair[1])
        && starts.last().is_some_and(|last| *last < rows)
}

impl Spans {
    /// The bytes of all numbers, little-endian, in the order of the fields.
    pub fn bytes(&self) -> [Vec<u8>; 9] {
        let counts = |numbers: &[i64]| together(numbers.iter().map(|number| number.to_le_bytes()));
        let floats = |numbers: &[f64]| together(numbers.iter().map(|number| number.to_le_bytes()));
        [
            counts(&self.n),
            floats(&self.min),
            floats(&self.max),
            floats(&self.mean),
            floats(&self.first),
            floats(&self.last),
            floats(&self.squares),
            counts(&self.nans),
            counts(&self.nulls),
        ]
    }

    /// The inverse of [`bytes`](Self::bytes). None: the lengths do not fit.
    pub fn of_bytes(bytes: [&[u8]; 9]) -> Option<Spans> {
        let [n, min, max, mean, first, last, squares, nans, nulls] = bytes.map(<[u8]>::as_chunks::<8>);
        let all = [n, min, max, mean, first, last, squares, nans, nulls];
        if all.iter().any(|(numbers, rest)| numbers.len() != n.0.len() || !rest.is_empty()) {
            return None;
        }
        let counts =
            |(numbers, _): (&[[u8; 8]], _)| numbers.iter().copied().map(i64::from_le_bytes).collect();
        let floats =
            |(numbers, _): (&[[u8; 8]], _)| numbers.iter().copied().map(f64::from_le_bytes).collect();
        Some(Spans {
            n: counts(n),
            min: floats(min),
            max: floats(max),
            mean: floats(mean),
            first: floats(first),
            last: floats(last),
            squares: floats(squares),
            nans: counts(nans),
            nulls: counts(nulls),
        })
    }

    fn with_capacity(count: usize) -> Spans {
        let floats = || Vec::with_capacity(count);
        let counts = || Vec::with_capacity(count);
        Spans {
            n: counts(),
            min: floats(),
            max: floats(),
            mean: floats(),
            first: floats(),
            last: floats(),
            squares: floats(),
            nans: counts(),
            nulls: counts(),
        }
    }

    /// Adds a span that combines these.
    #[inline]
    fn combine(&mut self, parts: &Spans, indexes: Range<usize>) {
        let sum = |counts: &[i64]| counts[indexes.clone()].iter().sum();
        let counted = indexes.clone().filter(|index| parts.n[*index] > 0);
        let n: i64 = sum(&parts.n);
        let (first, last) = (counted.clone().next(), counted.clone().next_back());
        let at = |numbers: &[f64], index: Option<usize>| index.map_or(f64::NAN, |index| numbers[index]);
        let (mut mean, mut squares) = (at(&parts.mean, first), at(&parts.squares, first));
        if first != last {
            let weighed = counted.clone().map(|index| parts.n[index] as f64 * parts.mean[index]);
            mean = weighed.sum::<f64>() / n as f64;
            let distances = counted.clone().map(|index| {
                let distance = parts.mean[index] - mean;
                parts.squares[index] + parts.n[index] as f64 * distance * distance
            });
            squares = distances.sum();
        }
        self.n.push(n);
        self.nans.push(sum(&parts.nans));
        self.nulls.push(sum(&parts.nulls));
        self.min.push(counted.clone().map(|index| parts.min[index]).fold(f64::NAN, f64::min));
        self.max.push(counted.map(|index| parts.max[index]).fold(f64::NAN, f64::max));
        self.mean.push(mean);
        self.first.push(at(&parts.first, first));
        self.last.push(at(&parts.last, last));
        self.squares.push(squares);
    }

    #[inline]
    fn add(&mut self, values: &[f64], is_there: &[bool]) {
        let (mut n, mut nulls) = (0, 0);
        let (mut first, mut last, mut sum) = (f64::NAN, f64::NAN, 0.0);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for (value, is_there) in values.iter().copied().zip(is_there) {
            if !is_there {
                nulls += 1;
            } else if !value.is_nan() {
                if n == 0 {
                    first = value;
                }
                n += 1;
                sum += value;
                last = value;
                least = if value < least { value } else { least };
                most = if value > most { value } else { most };
            }
        }
        let mean = sum / n as f64;
        let mut squares = 0.0;
        for (value, is_there) in values.iter().copied().zip(is_there) {
            if *is_there && !value.is_nan() {
                squares += (value - mean) * (value - mean);
            }
        }
        let or_none = |found: f64| if n == 0 { f64::NAN } else { found };
        self.n.push(n);
        self.nans.push(values.len() as i64 - n - nulls);
        self.nulls.push(nulls);
        self.min.push(or_none(least));
        self.max.push(or_none(most));
        self.mean.push(mean);
        self.first.push(first);
        self.last.push(last);
        self.squares.push(or_none(squares));
    }
}

fn together(numbers: impl ExactSizeIterator<Item = [u8; 8]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 * numbers.len());
    numbers.for_each(|number| bytes.extend_from_slice(&number));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], nulls: Option<&[u8]>, rows: usize, starts: &[usize]) -> Option<Spans> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        of_columns(&bytes, nulls, rows, starts)
    }

    #[test]
    fn null_and_nan_are_counted_alone() {
        let values = [1.0, f64::NAN, 9.0, 7.0, f64::NAN, f64::NAN];
        let spans = of(&values, Some(&[0, 0, 1, 0, 0, 0]), 6, &[0, 4]).unwrap();
        assert_eq!((spans.n, spans.nans, spans.nulls), (vec![2, 0], vec![1, 2], vec![1, 0]));
        assert_eq!((spans.min[0], spans.max[0], spans.mean[0]), (1.0, 7.0, 4.0));
        assert_eq!((spans.first[0], spans.last[0], spans.squares[0]), (1.0, 7.0, 18.0));
        let none =
            [spans.min[1], spans.max[1], spans.mean[1], spans.first[1], spans.last[1], spans.squares[1]];
        assert!(none.iter().all(|value| value.is_nan()));
    }

    #[test]
    fn columns_are_one_after_another() {
        let spans = of(&[1.0, 2.0, 4.0, f64::INFINITY, -1.0, 0.0], None, 3, &[0, 1]).unwrap();
        assert_eq!(spans.n, [1, 2, 1, 2]);
        assert_eq!(spans.max, [1.0, 4.0, f64::INFINITY, 0.0]);
        assert_eq!(spans.mean, [1.0, 3.0, f64::INFINITY, -0.5]);
        assert_eq!(spans.squares[1], 2.0);
        assert!(spans.squares[2].is_nan());
    }

    #[test]
    fn bytes_are_little_endian() {
        let [n, min, .., nulls] = of(&[1.0, 2.0], None, 2, &[0]).unwrap().bytes();
        assert_eq!((n, min), (2i64.to_le_bytes().to_vec(), 1f64.to_le_bytes().to_vec()));
        assert_eq!(nulls, [0; 8]);
    }

    #[test]
    fn spans_are_combined_as_their_rows() {
        let values = [1.0, 4.0, f64::NAN, 2.5, f64::NAN, 9.0, -1.0, 3.0, 8.0, 0.5, 7.0, 7.0];
        let nulls = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let short = of(&values, Some(&nulls), 6, &[0, 1, 2, 3, 5]).unwrap();
        let bytes = short.bytes();
        let parts = Spans::of_bytes(bytes.each_ref().map(|bytes| &bytes[..])).unwrap();
        let long = combined(&parts, 5, &[0, 2, 3]).unwrap();
        let expected = of(&values, Some(&nulls), 6, &[0, 2, 3]).unwrap();
        assert_eq!(format!("{long:?}"), format!("{expected:?}"));
        assert_eq!(format!("{short:?}"), format!("{:?}", combined(&short, 5, &[0, 1, 2, 3, 4]).unwrap()));
        assert!(combined(&short, 5, &[0, 5]).is_none() && combined(&short, 4, &[0]).is_none());
        assert!(
            Spans::of_bytes([&bytes[0][..8]; 9]).is_some() && Spans::of_bytes([&bytes[0][..7]; 9]).is_none()
        );
    }

    #[test]
    fn a_bin_starts_where_the_number_of_a_time_differs() {
        let starts =
            |times: &[i64]| bin_starts(&times.iter().map(|t| t.to_le_bytes()).collect::<Vec<_>>(), 10);
        assert_eq!(starts(&[-11, -10, -1, 0, 9, 10, 35, 35]), [0, 1, 3, 5, 6]);
        assert_eq!(starts(&[i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX]), [0, 2]);
        assert!(starts(&[]).is_empty());
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        for (values, nulls, rows, starts) in [
            (&[1.0, 2.0, 3.0][..], None, 2, &[0][..]),
            (&[1.0, 2.0], Some(&[0u8][..]), 2, &[0]),
            (&[1.0, 2.0], None, 2, &[1]),
            (&[1.0, 2.0], None, 2, &[0, 0]),
            (&[1.0, 2.0], None, 2, &[0, 2]),
            (&[1.0, 2.0], None, 2, &[]),
            (&[], None, 0, &[0]),
        ] {
            assert!(of(values, nulls, rows, starts).is_none());
        }
    }
}
