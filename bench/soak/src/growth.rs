//! Whether a figure grew: the line through what was seen of it in the second half.
//!
//! Why here: memory goes up and down with what happens to be under way; only a slope over many samples says more.
//! Invariants: pure.

/// A figure over time, one sample an interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(Vec<(f64, f64)>);

/// What is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// Growth over the second half, and the part of the mean that is allowed beside it.
    pub(crate) growth: f64,
    pub(crate) part: f64,
    /// What no sample may exceed.
    pub(crate) most: f64,
}

impl Series {
    pub(crate) fn add(&mut self, seconds: f64, value: f64) {
        self.0.push((seconds, value));
    }

    pub(crate) fn most(&self) -> f64 {
        self.0.iter().map(|(_, value)| *value).fold(0.0, f64::max)
    }

    fn second_half(&self) -> &[(f64, f64)] {
        self.0.get(self.0.len() / 2..).unwrap_or_default()
    }

    /// By how much the least squares line rises over the second half, and the mean there.
    pub(crate) fn rise(&self) -> (f64, f64) {
        let half = self.second_half();
        let number = half.len() as f64;
        if half.len() < 2 {
            return (0.0, half.first().map_or(0.0, |(_, value)| *value));
        }
        let mean = |of: fn(&(f64, f64)) -> f64| half.iter().map(of).sum::<f64>() / number;
        let (time, value) = (mean(|sample| sample.0), mean(|sample| sample.1));
        let above: f64 = half.iter().map(|(at, seen)| (at - time) * (seen - value)).sum();
        let below: f64 = half.iter().map(|(at, _)| (at - time).powi(2)).sum();
        let span = half.last().map_or(0.0, |last| last.0) - half.first().map_or(0.0, |first| first.0);
        (if below > 0.0 { above / below * span } else { 0.0 }, value)
    }

    /// Why the figure is not what it may be, if it is not.
    pub(crate) fn judge(&self, name: &str, bound: Bound) -> Option<String> {
        let (rise, mean) = self.rise();
        let allowed = bound.growth + bound.part * mean;
        if rise > allowed {
            return Some(format!("{name} grew by {rise:.1} in the second half, more than {allowed:.1}"));
        }
        let most = self.most();
        (most > bound.most).then(|| format!("{name} reached {most:.1}, more than {:.1}", bound.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { growth: 5.0, part: 0.05, most: 500.0 };

    fn series(value: impl Fn(f64) -> f64) -> Series {
        let mut series = Series::default();
        (0..100).map(f64::from).for_each(|second| series.add(second, value(second)));
        series
    }

    #[test]
    fn a_line_is_found_through_noise_and_the_first_half_does_not_count() {
        let noise = |second: f64| (second * 7.0) % 5.0 - 2.0;
        let (rise, mean) = series(|second| 100.0 + 0.5 * second + noise(second)).rise();
        assert!((rise - 24.5).abs() < 1.5, "{rise}");
        assert!((mean - 137.0).abs() < 1.0, "{mean}");
        let settled = series(|second| second.min(50.0) * 4.0 + noise(second));
        assert_eq!(settled.judge("memory", BOUND), None);
    }

    #[test]
    fn growth_and_height_are_told() {
        let told = series(|second| 100.0 + second).judge("memory", BOUND).unwrap();
        assert!(told.starts_with("memory grew by 49.0"), "{told}");
        let told = series(|_| 501.0).judge("memory", BOUND).unwrap();
        assert!(told.contains("reached 501.0"), "{told}");
        assert_eq!(Series::default().judge("memory", BOUND), None);
    }
}
