//! Weaves all changes of a file into its text, each behind a switch that is read at run time.
//!
//! Compiling once for every change would take days. An expression `E` that can be `A` or `B` instead becomes
//! `(if on(1) { A } else if on(2) { B } else { E })`, where `E` has the changes of what it encloses woven in.

use crate::site::{Place, Site};
use std::fmt::Write;
use std::ops::Range;

/// A place of a file with the numbers of the changes that are woven in there; the number is the switch.
pub struct Numbered<'s> {
    pub site: &'s Site,
    /// For each of the site's texts, its number, or nothing when it did not compile.
    pub numbers: Vec<Option<usize>>,
}

/// A file with its changes woven in, and which bytes of it belong to which change.
#[derive(Default)]
pub struct Woven {
    pub text: String,
    /// The text of one change.
    pub changes: Vec<(Range<usize>, usize)>,
    /// A whole site, with all its changes.
    pub sites: Vec<(Range<usize>, Vec<usize>)>,
}

/// Weaves. Sites must be in order, outer ones before those they enclose.
pub fn weave(text: &str, sites: &[Numbered]) -> Woven {
    let mut woven = Woven::default();
    span(text, 0..text.len(), sites, &mut woven);
    woven
}

fn span(text: &str, range: Range<usize>, mut sites: &[Numbered], woven: &mut Woven) {
    let mut at = range.start;
    while let Some((outer, rest)) = sites.split_first() {
        let within = rest.iter().take_while(|inner| inner.site.range.end <= outer.site.range.end);
        let (inner, after) = rest.split_at(match outer.site.place {
            Place::Body => 0,
            Place::Expression => within.count(),
        });
        woven.text.push_str(&text[at..outer.site.range.start]);
        one(text, outer, inner, woven);
        at = outer.site.range.end;
        sites = after;
    }
    woven.text.push_str(&text[at..range.end]);
}

fn one(text: &str, outer: &Numbered, inner: &[Numbered], woven: &mut Woven) {
    let site = outer.site;
    let live: Vec<(usize, &String)> =
        outer.numbers.iter().zip(&site.instead).filter_map(|(number, by)| Some(((*number)?, by))).collect();
    if live.is_empty() {
        return span(text, site.range.clone(), inner, woven);
    }
    let start = woven.text.len();
    if site.place == Place::Expression {
        woven.text.push('(');
    }
    for &(number, by) in &live {
        let _ = write!(woven.text, "if crate::mutants::on({number}) {{ ");
        let begun = woven.text.len();
        woven.text.push_str(by);
        woven.changes.push((begun..woven.text.len(), number));
        woven.text.push_str(match site.place {
            Place::Expression => " } else ",
            Place::Body => " } ",
        });
    }
    if site.place == Place::Expression {
        woven.text.push_str("{ ");
        span(text, site.range.clone(), inner, woven);
        woven.text.push_str(" })");
    }
    woven.sites.push((start..woven.text.len(), live.iter().map(|&(number, _)| number).collect()));
}

#[cfg(test)]
mod tests {
    use super::{Numbered, weave};
    use crate::site::sites;

    #[test]
    fn what_an_expression_encloses_is_woven_into_the_unchanged_branch() {
        let code = "fn f() -> bool { a < 1 }";
        let found = sites(code).unwrap();
        let mut next = 0;
        let numbered: Vec<_> = found
            .iter()
            .map(|site| {
                let numbers = site.instead.iter().map(|_| {
                    next += 1;
                    // The first does not compile, say.
                    (next > 1).then_some(next)
                });
                Numbered { site, numbers: numbers.collect() }
            })
            .collect();
        let woven = weave(code, &numbered);
        assert_eq!(
            woven.text,
            "fn f() -> bool { if crate::mutants::on(2) { return false; } (if crate::mutants::on(3) { a <= 1 } \
             else if crate::mutants::on(4) { a >= 1 } else { a < (if crate::mutants::on(5) { 2 } else { 1 }) }) }"
        );
        let (range, number) = &woven.changes[1];
        assert_eq!((&woven.text[range.clone()], *number), ("a <= 1", 3));
    }
}
