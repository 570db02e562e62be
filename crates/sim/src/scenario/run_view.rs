//! Runs the commands of a script that show or expect what Dogwatch says: explanations, and the view
//! of the fleet.

use super::command::{ScriptLine, ViewCommand};
use super::explanation::explain_subject;
use super::fleet_view::{NotedEstimate, read_fleet_view, view_lines};
use super::run::ScenarioRun;

impl ScenarioRun {
    pub(super) async fn show_explanation(&mut self, line: &ScriptLine, node: &str) {
        match explain_subject(&self.stage, node).await {
            Ok(lines) => {
                for text in lines {
                    self.timeline
                        .add_remark(&format!("        | {text}"), &self.stage.short_names);
                }
            }
            Err(why) => self.record_failure(line, &why),
        }
    }

    /// Checks that the explanation contains this text.
    pub(super) async fn expect_explanation(&mut self, line: &ScriptLine, node: &str, text: &str) {
        self.observe_changes(true);
        match explain_subject(&self.stage, node).await {
            Ok(lines) if lines.iter().any(|line| line.contains(text)) => {}
            Ok(lines) => self.record_failure(line, &format!("it says: {}", lines.join(" | "))),
            Err(why) => self.record_failure(line, &why),
        }
    }

    pub(super) async fn run_view_command(&mut self, line: &ScriptLine, deed: &ViewCommand) {
        self.observe_changes(true);
        if let Err(why) = self.try_view_command(deed).await {
            self.record_failure(line, &why);
        }
    }

    async fn try_view_command(&mut self, deed: &ViewCommand) -> Result<(), String> {
        if let ViewCommand::ExpectEstimate(percent) = deed {
            let noted = self.estimate.as_ref().ok_or("no estimate was noted")?;
            let said = noted.judge_estimate(&self.stage, *percent)?;
            self.show_view_line(&said);
            return Ok(());
        }
        let view = read_fleet_view(&self.stage).await?;
        match deed {
            ViewCommand::Show => view_lines(&view)
                .iter()
                .for_each(|it| self.show_view_line(it)),
            ViewCommand::Expect(text) => {
                let lines = view_lines(&view);
                if !lines.iter().any(|line| line.contains(text)) {
                    return Err(format!("it says: {}", lines.join(" | ")));
                }
            }
            ViewCommand::NoteEstimate => {
                let noted = NotedEstimate::of_view(&view)?;
                self.show_view_line(&noted.describe_estimate());
                self.estimate = Some(noted);
            }
            ViewCommand::ExpectEstimate(_) => {}
        }
        Ok(())
    }

    fn show_view_line(&mut self, text: &str) {
        let text = format!("        | {text}");
        self.timeline.add_remark(&text, &self.stage.short_names);
    }
}
