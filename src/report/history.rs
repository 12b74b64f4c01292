//! The histories themselves, for other checkers of consistency.

use crate::check::Judge;
use crate::check::consistency::epochs::Run;
use crate::check::consistency::export;
use crate::timeline::EvidenceInput;

/// JSON lines, see [`export`].
///
/// # Errors
/// Why the run's histories can't be told apart by epoch.
pub fn render(input: &EvidenceInput) -> Result<String, String> {
    Run::of(&Judge::new(input)).map(|run| export::render(&run))
}
