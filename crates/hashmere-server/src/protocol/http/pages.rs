//! The files of the dashboard, which are in the program.

use super::reply::Answer;

/// A file.
#[derive(Debug)]
pub struct Page {
    path: &'static [u8],
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// uPlot 1.6.32 is MIT; its licence is beside it.
const PAGES: &[Page] = &[
    Page { path: b"/", kind: HTML, text: include_str!("pages/index.html") },
    Page { path: b"/dashboard.js", kind: SCRIPT, text: include_str!("pages/dashboard.js") },
    Page { path: b"/browser.js", kind: SCRIPT, text: include_str!("pages/browser.js") },
    Page { path: b"/hot.js", kind: SCRIPT, text: include_str!("pages/hot.js") },
    Page { path: b"/big.js", kind: SCRIPT, text: include_str!("pages/big.js") },
    Page { path: b"/tail.js", kind: SCRIPT, text: include_str!("pages/tail.js") },
    Page { path: b"/dashboard.css", kind: STYLE, text: include_str!("pages/dashboard.css") },
    Page { path: b"/icon.svg", kind: "image/svg+xml", text: include_str!("pages/icon.svg") },
    Page { path: b"/uplot.js", kind: SCRIPT, text: include_str!("pages/uplot-1.6.32.min.js") },
    Page { path: b"/uplot.css", kind: STYLE, text: include_str!("pages/uplot-1.6.32.min.css") },
    Page { path: b"/uplot-licence", kind: super::reply::TEXT, text: include_str!("pages/uplot-LICENSE.txt") },
];

/// The file of this path.
pub fn find(path: &[u8]) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.path == path)
}

impl Page {
    /// Writes the whole reply.
    pub fn write(&self, out: &mut Vec<u8>, answer: &Answer<'_>) {
        answer.start_page(out);
        answer.finish(out, self.kind, self.text.len() as u64);
        answer.body(out, self.text.as_bytes());
    }
}
