//! Figures of a bin that need all its readings at once. They are those of Apache Commons Math 3.3, which the Archiver
//! Appliance calls: DescriptiveStatistics and LoessInterpolator.

use crate::loess::loess;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    Median,
    /// n / (n-1) / (n-2) Σ ((x - mean) / std)³; NaN for fewer than three values and for equal ones
    Skewness,
    /// that of a normal distribution is 0; NaN for fewer than four values and for equal ones
    Kurtosis,
    /// the value at the middle of the bin on a curve through locally weighted regressions
    Loess,
}

impl Figure {
    pub fn named(name: &str) -> Option<Figure> {
        Some(match name {
            "median" => Figure::Median,
            "skewness" => Figure::Skewness,
            "kurtosis" => Figure::Kurtosis,
            "loess" => Figure::Loess,
            _ => return None,
        })
    }
}

/// The figure of each bin, NaN for one without readings. `values` has no NaN; `counts` are the readings of each bin,
/// `times` those of all readings and `middles` those of the bins, in microseconds. None: the lengths do not fit.
pub fn figures(
    figure: Figure,
    times: &[i64],
    values: &[f64],
    counts: &[usize],
    middles: &[i64],
) -> Option<Vec<f64>> {
    let total = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count))?;
    if total != values.len() || times.len() != values.len() || middles.len() != counts.len() {
        return None;
    }
    let mut start = 0;
    let bins = counts.iter().map(|count| {
        start += count;
        start - count..start
    });
    let of_bin = |(bin, middle): (Range<usize>, &i64)| {
        let readings = values.get(bin.clone())?;
        Some(match figure {
            Figure::Median => median(readings),
            Figure::Skewness => skewness(readings),
            Figure::Kurtosis => kurtosis(readings),
            Figure::Loess => loess(times.get(bin)?, readings, *middle),
        })
    };
    bins.zip(middles).map(of_bin).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    if values.is_empty() {
        return f64::NAN;
    }
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_odd {
        return *upper;
    }
    (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + *upper) / 2.0
}

fn skewness(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    match moments(values) {
        Some([second, third, _]) if n > 2.0 => {
            let deviation = (second / (n - 1.0)).sqrt();
            n / (n - 1.0) / (n - 2.0) * third / deviation.powi(3)
        }
        _ => f64::NAN,
    }
}

fn kurtosis(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    match moments(values) {
        Some([second, _, fourth]) if n > 3.0 => {
            let variance = second / (n - 1.0);
            n * (n + 1.0) / (n - 1.0) / (n - 2.0) / (n - 3.0) * fourth / (variance * variance)
                - 3.0 * (n - 1.0).powi(2) / (n - 2.0) / (n - 3.0)
        }
        _ => f64::NAN,
    }
}

/// The sums of the second, third and fourth powers of the distances from the mean. None: all values are equal.
fn moments(values: &[f64]) -> Option<[f64; 3]> {
    let first = *values.first()?;
    if values.iter().all(|value| *value == first) {
        return None;
    }
    let n = values.len() as f64;
    let [sum] = sums(values, |value| [value]);
    let [more] = sums(values, |value| [value - sum / n]);
    let mean = (sum + more) / n;
    Some(sums(values, |value| {
        let distance = value - mean;
        let square = distance * distance;
        [square, square * distance, square * square]
    }))
}

/// Sums in four parts, which are independent and therefore computed at once.
fn sums<const N: usize>(values: &[f64], terms: impl Fn(f64) -> [f64; N]) -> [f64; N] {
    let (fours, rest) = values.as_chunks::<4>();
    let mut parts = [[0.0; 4]; N];
    for four in fours {
        let terms = four.map(&terms);
        for (number, part) in parts.iter_mut().enumerate() {
            for (sum, term) in part.iter_mut().zip(&terms) {
                *sum += term[number];
            }
        }
    }
    let mut total = parts.map(|[a, b, c, d]| (a + b) + (c + d));
    for value in rest {
        for (sum, term) in total.iter_mut().zip(terms(*value)) {
            *sum += term;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(figure: Figure, values: &[f64], counts: &[usize]) -> Vec<f64> {
        let times: Vec<i64> = (0..values.len() as i64).collect();
        figures(figure, &times, values, counts, &vec![0; counts.len()]).unwrap()
    }

    #[test]
    fn a_bin_has_its_own_figure() {
        let found = of(Figure::Median, &[3.0, 1.0, 2.0, 9.0, 8.0], &[3, 0, 2]);
        assert_eq!((found[0], found[2]), (2.0, 8.5));
        assert!(found[1].is_nan());
        let infinite = of(Figure::Median, &[f64::INFINITY, 1.0, f64::NEG_INFINITY, f64::INFINITY], &[2, 2]);
        assert!(infinite[0] == f64::INFINITY && infinite[1].is_nan());
    }

    /// Of 1, 2, 4: mean 7/3, variance 7/3, skewness 0.9352195…; of 1, 2, 4, 8: kurtosis 0.7576559…  (by scipy, bias=False).
    #[test]
    fn shapes() {
        assert!((of(Figure::Skewness, &[1.0, 2.0, 4.0], &[3])[0] - 0.935_219_529_582_824_5).abs() < 1e-12);
        let kurtosis = of(Figure::Kurtosis, &[1.0, 2.0, 4.0, 8.0], &[4])[0];
        assert!((kurtosis - 0.757_655_954_631_379_9).abs() < 1e-12, "{kurtosis}");
        for (figure, n) in [(Figure::Skewness, 2), (Figure::Kurtosis, 3)] {
            assert!(of(figure, &[1.0, 2.0, 4.0][..n], &[n])[0].is_nan());
            assert!(of(figure, &[0.1; 7], &[7])[0].is_nan());
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        assert!(figures(Figure::Median, &[0], &[1.0, 2.0], &[2], &[0]).is_none());
        assert!(figures(Figure::Median, &[0, 1], &[1.0, 2.0], &[1], &[0]).is_none());
        assert!(figures(Figure::Median, &[0, 1], &[1.0, 2.0], &[2], &[]).is_none());
        assert!(figures(Figure::Median, &[0, 1], &[1.0, 2.0], &[usize::MAX, 3], &[0, 0]).is_none());
    }
}
