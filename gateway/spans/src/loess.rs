//! Locally weighted regression, and the spline through its points (Cleveland 1979, "Robust Locally Weighted Regression
//! and Smoothing Scatterplots"), with the default settings of Apache Commons Math's LoessInterpolator.

/// Fraction of all readings used for a fit.
const BANDWIDTH: f64 = 0.3;
/// Iterations that reduce the weight of outliers.
const ROUNDS: usize = 2;
const ACCURACY: f64 = 1e-12;
const SECOND: f64 = 1e6;

/// The smoothed value at an instant, in microseconds as the times. Without a fit (too few readings, two at one time,
/// an instant outside) it is the first reading, as in the appliance.
pub(crate) fn loess(times: &[i64], values: &[f64], at: i64) -> f64 {
    let (Some(first), Some(last), Some(value)) = (times.first(), times.last(), values.first()) else {
        return f64::NAN;
    };
    let width = (BANDWIDTH * times.len() as f64) as usize;
    let ascends = times.windows(2).all(|pair| pair[0] < pair[1]);
    if width < 2 || !ascends || !(*first..=*last).contains(&at) {
        return *value;
    }
    // far from 0 the squares of times would leave no precision for their differences
    let seconds = |time: i64| (time - first) as f64 / SECOND;
    let times: Vec<f64> = times.iter().map(|time| seconds(*time)).collect();
    spline(&times, &smoothed(&times, values, width), seconds(at))
}

fn smoothed(times: &[f64], values: &[f64], width: usize) -> Vec<f64> {
    let starts = windows(times, width);
    let mut trusted = vec![1.0; times.len()];
    let mut fitted = values.to_vec();
    for round in 0..=ROUNDS {
        for (index, start) in starts.iter().copied().enumerate() {
            let window = start..start + width;
            let (x, y, trusted) = (&times[window.clone()], &values[window.clone()], &trusted[window]);
            fitted[index] = fit(x, y, trusted, times[index], values[index]).unwrap_or(fitted[index]);
        }
        let distances: Vec<f64> =
            values.iter().zip(&fitted).map(|(value, fitted)| (value - fitted).abs()).collect();
        let mut sorted = distances.clone();
        let (_, typical, _) = sorted.select_nth_unstable_by(distances.len() / 2, f64::total_cmp);
        if round == ROUNDS || *typical < ACCURACY {
            break;
        }
        for (trust, distance) in trusted.iter_mut().zip(distances) {
            let share = distance / (6.0 * *typical);
            *trust = if share < 1.0 { (1.0 - share * share).powi(2) } else { 0.0 };
        }
    }
    fitted
}

/// The index of the first of the `width` readings nearest to each.
fn windows(times: &[f64], width: usize) -> Vec<usize> {
    let mut start = 0;
    let nearest = times.iter().map(|time| {
        while start + width < times.len() && times[start + width] - time < time - times[start] {
            start += 1;
        }
        start
    });
    nearest.collect()
}

/// The weighted straight line through a window, at a reading of this time and value. None: all weights are 0.
fn fit(x: &[f64], y: &[f64], trusted: &[f64], time: f64, value: f64) -> Option<f64> {
    let reach = (time - x[0]).max(x[x.len() - 1] - time);
    // Σw, Σwx, Σwx², Σwy and Σwxy, each in two parts, which are computed at once; x and y count from the reading
    let mut sums = [[0.0; 2]; 5];
    let mut add = |x: [f64; 2], y: [f64; 2], trusted: [f64; 2]| {
        for lane in 0..2 {
            let (x, y) = (x[lane] - time, y[lane] - value);
            let share = x.abs() / reach;
            let rest = 1.0 - share * share * share;
            let weight = rest * rest * rest * trusted[lane];
            for (sum, term) in sums.iter_mut().zip([1.0, x, x * x, y, x * y]) {
                sum[lane] += weight * term;
            }
        }
    };
    let ((xs, x), (ys, y), (ts, t)) = (x.as_chunks::<2>(), y.as_chunks::<2>(), trusted.as_chunks::<2>());
    for ((x, y), trusted) in xs.iter().zip(ys).zip(ts) {
        add(*x, *y, *trusted);
    }
    if let ([x], [y], [trusted]) = (x, y, t) {
        add([*x, time], [*y, value], [*trusted, 0.0]);
    }
    let [total, x, xx, y, xy] = sums.map(|[one, other]| one + other);
    if total <= 0.0 {
        return None;
    }
    let (mean_x, mean_y) = (x / total, y / total);
    let spread = xx / total - mean_x * mean_x;
    if spread.max(0.0).sqrt() < ACCURACY {
        return Some(value + mean_y);
    }
    let slope = (xy / total - mean_x * mean_y) / spread;
    Some(value + mean_y - slope * mean_x)
}

/// The natural cubic spline through the points, at `at` between the first and the last.
fn spline(x: &[f64], y: &[f64], at: f64) -> f64 {
    let n = x.len();
    let steps: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let rises: Vec<f64> = y.windows(2).zip(&steps).map(|(pair, step)| (pair[1] - pair[0]) / step).collect();
    // second derivatives, by elimination of the tridiagonal system (Press et al., Numerical Recipes, 3.3)
    let (mut above, mut bends) = (vec![0.0; n], vec![0.0; n]);
    for index in 1..n - 1 {
        let pivot = 2.0 * (steps[index - 1] + steps[index]) - steps[index - 1] * above[index - 1];
        above[index] = steps[index] / pivot;
        let bend = 6.0 * (rises[index] - rises[index - 1]);
        bends[index] = (bend - steps[index - 1] * bends[index - 1]) / pivot;
    }
    for index in (1..n - 1).rev() {
        bends[index] -= above[index] * bends[index + 1];
    }
    let piece = x.partition_point(|time| *time <= at).saturating_sub(1).min(n - 2);
    let step = steps[piece];
    let (a, b) = ((x[piece + 1] - at) / step, (at - x[piece]) / step);
    let curve = (a.powi(3) - a) * bends[piece] + (b.powi(3) - b) * bends[piece + 1];
    a * y[piece] + b * y[piece + 1] + curve * step * step / 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_its_own_regression() {
        let times: Vec<i64> = (0..61).map(|second| 1_700_000_000_000_000 + second * 1_000_000).collect();
        let values: Vec<f64> = (0..61).map(|second| 3.0 * f64::from(second) - 1.0).collect();
        assert!((loess(&times, &values, times[30] + 500_000) - 90.5).abs() < 1e-9);
        assert!((loess(&times, &values, times[60]) - 179.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_fit_it_is_the_first_reading() {
        assert_eq!(loess(&[0, 1, 2], &[5.0, 6.0, 7.0], 1), 5.0);
        let twice = [0, 1, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(loess(&twice, &[5.0; 10], 3), 5.0);
        let times: Vec<i64> = (0..10).collect();
        assert_eq!(loess(&times, &[5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 4.0], 10), 5.0);
        assert!(loess(&[], &[], 0).is_nan());
    }
}
