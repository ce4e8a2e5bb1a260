//! Numbers in few columns.

/// A rate: at most six characters, such as `0`, `0.5`, `123`, `12.3k`, `4.56M`.
pub fn rate(value: f64) -> String {
    let size = value.abs();
    if size < 0.05 {
        return "0".into();
    }
    let (scaled, unit) = match size {
        s if s < 999.5 => (value, ""),
        s if s < 999_500.0 => (value / 1e3, "k"),
        s if s < 999_500_000.0 => (value / 1e6, "M"),
        s if s < 999.5e9 => (value / 1e9, "G"),
        s if s < 999.5e12 => (value / 1e12, "T"),
        _ => (value / 1e15, "P"),
    };
    let digits = match (scaled.abs(), unit) {
        (s, "") if s >= 9.95 => 0,
        (_, "") => 1,
        (s, _) if s < 9.995 => 2,
        (s, _) if s < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{unit}")
}

/// A number of bytes: at most six characters, such as `512`, `1.5K`, `123M`. The units are powers of 1024.
pub fn bytes(value: u64) -> String {
    let mut scaled = value as f64;
    for unit in ["", "K", "M", "G", "T"] {
        if scaled < 999.5 {
            let digits = usize::from(!unit.is_empty() && scaled < 9.95);
            return format!("{scaled:.digits$}{unit}");
        }
        scaled /= 1024.0;
    }
    format!("{scaled:.1}P")
}

/// A ratio in per cent; `-`: there is none.
pub fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{:.1}%", ratio * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_columns() {
        let cases = [(0.0, "0"), (0.5, "0.5"), (9.96, "10"), (999.0, "999"), (999.9, "1.00k"), (12_345.0, "12.3k")];
        for (value, text) in cases {
            assert_eq!(rate(value), text);
        }
        assert_eq!((rate(4_560_000.0).as_str(), rate(-2500.0).as_str()), ("4.56M", "-2.50k"));
        assert_eq!((bytes(0).as_str(), bytes(1023).as_str(), bytes(1536).as_str()), ("0", "1.0K", "1.5K"));
        assert_eq!(bytes(123 << 20), "123M");
        // Up to an exbibyte.
        for power in 0..60 {
            let value = (1u64 << power) - 1;
            assert!(rate(value as f64 / 100.0).len() <= 6 && bytes(value).len() <= 6, "{value}");
        }
        assert_eq!((percent(None).as_str(), percent(Some(0.985)).as_str()), ("-", "98.5%"));
    }
}
