//! Writes a terminal's buffer as an SVG picture.

use std::fmt::Write as _;

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};

use crate::printable::text_width;

const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: u16 = 18;
const MARGIN: u16 = 12;

/// Frames of equal size, one shown after the other; a single one stands still.
#[derive(Debug, Clone)]
pub struct SvgPicture<'a> {
    /// What the picture shows, for those who do not see it.
    pub title: &'a str,
    /// Each frame with the time for which it is shown, in milliseconds.
    pub frames: &'a [(Buffer, u32)],
}

/// The colours are classes, which a style sheet in the file sets for light and for dark pages.
pub fn render_svg(picture: &SvgPicture<'_>) -> String {
    let areas = picture.frames.iter().map(|(buffer, _)| buffer.area());
    let columns = areas.clone().map(|area| area.width).max().unwrap_or(0);
    let rows = areas.map(|area| area.height).max().unwrap_or(0);
    let width = f32::from(columns) * CELL_WIDTH + f32::from(2 * MARGIN);
    let height = rows * CELL_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" height=\"{height}\">\n<title>{}</title>\n",
        escape_text(picture.title)
    );
    svg.push_str("<style>\n");
    svg.push_str(STYLE_SHEET);
    svg.push_str(&animation_rules(picture.frames));
    svg.push_str("</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n");
    for (index, (buffer, _)) in picture.frames.iter().enumerate() {
        let class = if picture.frames.len() > 1 {
            format!(" class=\"frame f{index}\"")
        } else {
            String::new()
        };
        writeln!(svg, "<g{class} transform=\"translate({MARGIN} {MARGIN})\">")
            .expect("a String takes all");
        write_frame(&mut svg, buffer);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

const STYLE_SHEET: &str = "\
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:#1f2328}
.page{fill:#f6f8fa;stroke:#d0d7de}
.b{font-weight:700}.d{opacity:.62}
.red{fill:#b3131f}.yellow{fill:#7a5200}.green{fill:#116329}.cyan{fill:#0a5c78}.magenta{fill:#8250a8}
.onbar{fill:#fff}.sel{fill:#d8dee4}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.page{fill:#0d1117;stroke:#30363d}
.red{fill:#ff7b72}.yellow{fill:#e3b341}.green{fill:#56d364}.cyan{fill:#76e3ea}.magenta{fill:#d2a8ff}
.onbar{fill:#0d1117}.sel{fill:#30363d}
}
";

/// Shows each frame for its time, then begins again; a reader who wants no motion sees the last one.
fn animation_rules(frames: &[(Buffer, u32)]) -> String {
    if frames.len() < 2 {
        return String::new();
    }
    let whole: u32 = frames.iter().map(|(_, time)| time).sum();
    let percent = |time: u32| f64::from(time) * 100.0 / f64::from(whole.max(1));
    let mut rules = String::from(".frame{visibility:hidden}\n");
    let mut start = 0;
    for (index, (_, time)) in frames.iter().enumerate() {
        let end = start + time;
        writeln!(
            rules,
            "@keyframes k{index}{{0%{{visibility:{}}}{:.3}%{{visibility:visible}}{:.3}%,100%{{visibility:hidden}}}}\n.f{index}{{animation:k{index} {whole}ms step-end infinite}}",
            if start == 0 { "visible" } else { "hidden" },
            percent(start),
            percent(end),
        )
        .expect("a String takes all");
        start = end;
    }
    writeln!(
        rules,
        "@media (prefers-reduced-motion:reduce){{.frame{{animation:none}}.f{}{{visibility:visible}}}}",
        frames.len() - 1
    )
    .expect("a String takes all");
    rules
}

fn write_frame(svg: &mut String, buffer: &Buffer) {
    let area = buffer.area();
    for y in 0..area.height {
        let runs = runs_of_row(buffer, y);
        for run in runs.iter().filter(|run| run.has_background()) {
            write_background(svg, run, y);
        }
        for run in runs.iter().filter(|run| !run.text.trim().is_empty()) {
            write_text(svg, run, y);
        }
    }
}

/// Neighbours of one style.
struct StyledRun {
    column: u16,
    columns: usize,
    text: String,
    style: (Color, Color, Modifier),
}

impl StyledRun {
    fn has_background(&self) -> bool {
        self.style.1 != Color::Reset || self.style.2.contains(Modifier::REVERSED)
    }
}

fn cell_style(cell: &Cell) -> (Color, Color, Modifier) {
    (cell.fg, cell.bg, cell.modifier)
}

fn runs_of_row(buffer: &Buffer, y: u16) -> Vec<StyledRun> {
    let mut runs: Vec<StyledRun> = Vec::new();
    let mut covered = 0;
    for x in 0..buffer.area().width {
        if x < covered {
            continue;
        }
        let cell = &buffer[(x, y)];
        let width = text_width(cell.symbol()).max(1);
        covered = x + u16::try_from(width).unwrap_or(1);
        let style = cell_style(cell);
        let fits = runs.last().is_some_and(|run| run.style == style);
        if !fits {
            runs.push(StyledRun {
                column: x,
                columns: 0,
                text: String::new(),
                style,
            });
        }
        if let Some(run) = runs.last_mut() {
            run.columns += width;
            run.text.push_str(cell.symbol());
        }
    }
    runs
}

#[expect(clippy::cast_precision_loss, reason = "columns of a terminal")]
fn run_position(run: &StyledRun) -> (f32, f32) {
    (
        f32::from(run.column) * CELL_WIDTH,
        run.columns as f32 * CELL_WIDTH,
    )
}

fn write_background(svg: &mut String, run: &StyledRun, y: u16) {
    let (x, width) = run_position(run);
    let class = colour_class(run.style.1).unwrap_or("sel");
    let top = y * CELL_HEIGHT;
    writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT}\"/>"
    )
    .expect("a String takes all");
}

fn write_text(svg: &mut String, run: &StyledRun, y: u16) {
    let (colour, background, modifier) = run.style;
    let mut classes = Vec::new();
    if background == Color::Reset {
        classes.extend(colour_class(colour));
    } else {
        classes.push("onbar");
    }
    if modifier.contains(Modifier::BOLD) {
        classes.push("b");
    }
    if modifier.contains(Modifier::DIM) {
        classes.push("d");
    }
    let class = if classes.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", classes.join(" "))
    };
    let lead = run.text.len() - run.text.trim_start().len();
    let text = run.text.trim();
    let (x, _) = run_position(run);
    let x = x + f32::from(u16::try_from(lead).unwrap_or(0)) * CELL_WIDTH;
    let width = f32::from(u16::try_from(text_width(text)).unwrap_or(0)) * CELL_WIDTH;
    let base = y * CELL_HEIGHT + 13;
    // The length keeps columns in line with any font.
    writeln!(
        svg,
        "<text{class} x=\"{x:.1}\" y=\"{base}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>",
        escape_text(text)
    )
    .expect("a String takes all");
}

fn colour_class(colour: Color) -> Option<&'static str> {
    match colour {
        Color::Red | Color::LightRed => Some("red"),
        Color::Yellow | Color::LightYellow => Some("yellow"),
        Color::Green | Color::LightGreen => Some("green"),
        Color::Cyan | Color::LightCyan | Color::Blue | Color::LightBlue => Some("cyan"),
        Color::Magenta | Color::LightMagenta => Some("magenta"),
        Color::Reset
        | Color::Black
        | Color::Gray
        | Color::DarkGray
        | Color::White
        | Color::Rgb(..)
        | Color::Indexed(_) => None,
    }
}

fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    fn frame(text: &str) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
        buffer.set_string(0, 0, text, Style::new().fg(Color::Red));
        buffer
    }

    #[test]
    fn a_hostile_name_is_text_in_the_picture() {
        let frames = [(frame("<script>&\"x\""), 0)];
        let svg = render_svg(&SvgPicture {
            title: "a<b",
            frames: &frames,
        });
        assert!(svg.contains("&lt;script&gt;&amp;&quot;x&quot;"), "{svg}");
        assert!(svg.contains("<title>a&lt;b</title>"), "{svg}");
        assert!(!svg.contains("keyframes"), "{svg}");
    }

    #[test]
    fn frames_follow_each_other_and_the_last_one_stays_without_motion() {
        let frames = [(frame("one"), 1_000), (frame("two"), 3_000)];
        let svg = render_svg(&SvgPicture {
            title: "t",
            frames: &frames,
        });
        assert!(
            svg.contains("@keyframes k1{0%{visibility:hidden}25.000%{visibility:visible}"),
            "{svg}"
        );
        assert!(svg.contains("4000ms"), "{svg}");
        assert!(
            svg.contains("reduce){.frame{animation:none}.f1{visibility:visible}"),
            "{svg}"
        );
    }
}
