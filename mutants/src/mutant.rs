//! All mutants of the tree: found, numbered, told apart.

use crate::site::{Place, Site, is_test, sites};
use crate::weave::{Numbered, Woven, weave};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One change.
pub struct Mutant {
    /// What tells it from the others in whatever version of the code, with tabs between: file, function, text
    /// before, text after, and which it is of those with all this the same.
    pub key: String,
    /// Whether it can be compiled.
    pub compiles: bool,
}

/// A file with its sites; mutants are numbered from `first` on, in order of sites.
pub struct Source {
    pub path: PathBuf,
    pub text: String,
    pub sites: Vec<Site>,
    first: usize,
}

impl Source {
    /// The file with all changes that compile woven in.
    pub fn woven(&self, mutants: &[Mutant]) -> Woven {
        let mut next = self.first;
        let numbered: Vec<Numbered> = self
            .sites
            .iter()
            .map(|site| {
                let numbers = site.instead.iter().map(|_| {
                    let number = next;
                    next += 1;
                    mutants[number].compiles.then_some(number)
                });
                Numbered { numbers: numbers.collect(), site }
            })
            .collect();
        weave(&self.text, &numbered)
    }
}

/// All of the given folders below `root`. Modules that are there for tests alone are left out.
pub fn all(root: &Path, folders: &[&str]) -> Result<(Vec<Source>, Vec<Mutant>), String> {
    let mut files = Vec::new();
    for folder in folders {
        rust_files(&root.join(folder), &mut files)?;
    }
    files.sort();
    let for_tests: Vec<PathBuf> = files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    files.retain(|(path, _)| !for_tests.iter().any(|module| path.with_extension("").starts_with(module)));
    let (mut sources, mut mutants, mut seen) = (Vec::new(), Vec::new(), BTreeMap::<String, usize>::new());
    for (path, text) in files {
        let sites = sites(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let first = mutants.len();
        let name = path.strip_prefix(root).expect("it was found below").display().to_string();
        for site in &sites {
            for by in &site.instead {
                let before = match site.place {
                    Place::Body => "",
                    Place::Expression => &text[site.range.clone()],
                };
                let same = format!("{name}\t{}\t{}\t{}", site.function, line(before), line(by));
                let nth = seen.entry(same.clone()).and_modify(|n| *n += 1).or_insert(1);
                mutants.push(Mutant { key: format!("{same}\t{nth}"), compiles: true });
            }
        }
        sources.push(Source { path, text, sites, first });
    }
    Ok((sources, mutants))
}

fn rust_files(folder: &Path, found: &mut Vec<(PathBuf, String)>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            found.push((path, text));
        }
    }
    Ok(())
}

/// Where the modules lie, without extension, that a file declares for tests alone.
fn test_modules(path: &Path, text: &str) -> Vec<PathBuf> {
    let beside = path.parent().expect("a file lies in a folder");
    let below = if path.ends_with("mod.rs") { beside.to_owned() } else { path.with_extension("") };
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let modules = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_test(&module.attrs) => Some(module),
        _ => None,
    });
    let lies = |module: &syn::ItemMod| match module.attrs.iter().find_map(given_path) {
        Some(name) => beside.join(name).with_extension(""),
        None => below.join(module.ident.to_string()),
    };
    modules.map(lies).collect()
}

/// The file that `#[path = "…"]` names.
fn given_path(attribute: &syn::Attribute) -> Option<String> {
    let given = attribute.meta.require_name_value().ok().filter(|given| given.path.is_ident("path"))?;
    match &given.value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. }) => Some(name.value()),
        _ => None,
    }
}

/// Text on one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::test_modules;
    use std::path::{Path, PathBuf};

    #[test]
    fn modules_for_tests_lie_below_the_file_that_declares_them_or_where_it_says() {
        let code = r#"
            mod shipped;
            #[cfg(test)]
            mod small;
            #[cfg(test)]
            #[path = "names_tests.rs"]
            mod tests;
            #[cfg(test)]
            mod inline {}
        "#;
        let of = |path: &str| test_modules(Path::new(path), code);
        assert_eq!(of("src/check/mod.rs"), ["src/check/small", "src/check/names_tests"].map(PathBuf::from));
        assert_eq!(
            of("src/check/names.rs"),
            ["src/check/names/small", "src/check/names_tests"].map(PathBuf::from)
        );
    }
}
