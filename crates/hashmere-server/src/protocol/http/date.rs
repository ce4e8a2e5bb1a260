//! The header with the time, written once a second.

/// The line, and the second that it is of.
#[derive(Clone, Copy, Debug)]
pub struct Date {
    second: u64,
    line: [u8; LEN],
}

const LEN: usize = 37;
const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

impl Date {
    /// The line of this second, since 1970.
    pub fn at(second: u64) -> Date {
        let mut line = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
        let (days, rest) = (second / 86_400, second % 86_400);
        let (year, month, day) = civil(days);
        line[6..9].copy_from_slice(DAYS[(days % 7) as usize]);
        digits(&mut line[11..13], day);
        line[14..17].copy_from_slice(MONTHS[(month as usize - 1) % 12]);
        digits(&mut line[18..22], year);
        digits(&mut line[23..25], rest / 3600);
        digits(&mut line[26..28], rest / 60 % 60);
        digits(&mut line[29..31], rest % 60);
        Date { second, line }
    }

    /// Is of this second from now on.
    #[inline]
    pub fn set(&mut self, second: u64) {
        if self.second != second {
            *self = Date::at(second);
        }
    }

    /// The line, with its ending.
    #[inline]
    pub fn line(&self) -> &[u8] {
        &self.line
    }
}

fn digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Year, month and day of a day since 1970: years begin in March, so that the day of a leap year is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let number = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(number <= 2), number, day - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_has_them() {
        let text = |second| String::from_utf8(Date::at(second).line().to_vec()).unwrap();
        assert_eq!(text(0), "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
        assert_eq!(text(784_111_777), "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        assert_eq!(text(951_827_696), "Date: Tue, 29 Feb 2000 12:34:56 GMT\r\n");
        assert_eq!(text(4_107_542_399), "Date: Sun, 28 Feb 2100 23:59:59 GMT\r\n");
    }
}
