//! Finds the places of a source file that can be changed, and what each can be changed to.

use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Lit, ReturnType, Type, UnOp};

/// Methods that are easily taken for one another.
const METHODS: [(&str, &str); 16] = [
    ("min", "max"),
    ("min_by", "max_by"),
    ("min_by_key", "max_by_key"),
    ("first", "last"),
    ("next", "last"),
    ("next_back", "next"),
    ("find", "rfind"),
    ("position", "rposition"),
    ("any", "all"),
    ("is_some", "is_none"),
    ("is_ok", "is_err"),
    ("is_some_and", "is_none_or"),
    ("take_while", "skip_while"),
    ("saturating_add", "saturating_sub"),
    ("checked_add", "checked_sub"),
    ("and_then", "or_else"),
];

/// Methods that answer yes or no, and have no counterpart.
const QUESTIONS: [&str; 5] = ["is_empty", "contains", "contains_key", "starts_with", "ends_with"];

/// Where a change is woven in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// At the start of a function's body: an early return.
    Body,
    /// In the place of an expression.
    Expression,
}

/// A place in a file, in bytes of its text, with the texts that can stand there instead.
pub struct Site {
    pub place: Place,
    pub range: Range<usize>,
    pub function: String,
    pub instead: Vec<String>,
}

/// All sites of a file, outer ones before those they enclose.
///
/// # Errors
/// When the text is not Rust.
pub fn sites(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, scope: Vec::new(), found: Vec::new() };
    finder.visit_file(&file);
    let mut found = finder.found;
    found.sort_by_key(|site| (site.range.start, site.place, std::cmp::Reverse(site.range.end)));
    Ok(found)
}

struct Finder<'t> {
    text: &'t str,
    scope: Vec<String>,
    found: Vec<Site>,
}

impl Finder<'_> {
    fn of(&self, node: &impl Spanned) -> &str {
        &self.text[node.span().byte_range()]
    }

    /// The text of `whole`, with `part` of it replaced.
    fn with(&self, whole: &impl Spanned, part: &impl Spanned, by: &str) -> String {
        let (whole, part) = (whole.span().byte_range(), part.span().byte_range());
        format!("{}{by}{}", &self.text[whole.start..part.start], &self.text[part.end..whole.end])
    }

    fn add(&mut self, place: Place, range: Range<usize>, instead: Vec<String>) {
        if !instead.is_empty() {
            self.found.push(Site { place, range, function: self.scope.join("::"), instead });
        }
    }

    fn add_expression(&mut self, node: &impl Spanned, instead: Vec<String>) {
        self.add(Place::Expression, node.span().byte_range(), instead);
    }

    /// A condition without `let` is fixed to the given answers; of a chain, each part without `let` to true.
    fn condition(&mut self, condition: &Expr, answers: &[&str]) {
        match condition {
            Expr::Let(_) => {}
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) && has_let(condition) => {
                self.condition(&binary.left, &["true"]);
                self.condition(&binary.right, &["true"]);
            }
            plain => self.add_expression(plain, answers.iter().map(|&answer| answer.to_owned()).collect()),
        }
    }

    fn function(
        &mut self,
        name: String,
        signature: &syn::Signature,
        block: &Block,
        inside: impl FnOnce(&mut Self),
    ) {
        self.scope.push(name);
        // What is computed while compiling cannot be switched at run time.
        if signature.constness.is_none() {
            if let Some(at) = block.stmts.first().map(|first| first.span().byte_range().start) {
                self.add(Place::Body, at..at, returned(&signature.output));
            }
            inside(self);
        }
        self.scope.pop();
    }

    fn of_expression(&self, node: &Expr) -> Vec<String> {
        match node {
            Expr::Binary(binary) if !has_let(node) => {
                operators(&binary.op).iter().map(|by| self.with(node, &binary.op, by)).collect()
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) => {
                vec![self.of(&unary.expr).to_owned()]
            }
            Expr::Lit(literal) => other_literal(&literal.lit),
            Expr::Path(path) => match path.path.segments.last() {
                Some(last) if is_constant(&last.ident.to_string()) => {
                    ["* 2", "/ 2"].map(|by| format!("{} {by}", self.of(node))).into()
                }
                _ => Vec::new(),
            },
            Expr::Macro(call) if call.mac.path.is_ident("matches") => vec![format!("!{}", self.of(node))],
            Expr::MethodCall(call) => {
                let name = call.method.to_string();
                let others = METHODS.iter().filter_map(|&(one, other)| match name.as_str() {
                    name if name == one => Some(other),
                    name if name == other => Some(one),
                    _ => None,
                });
                match name.as_str() {
                    name if QUESTIONS.contains(&name) => vec![format!("!{}", self.of(node))],
                    "cmp" | "total_cmp" => vec![format!("{}.reverse()", self.of(node))],
                    _ => others.map(|other| self.with(node, &call.method, other)).collect(),
                }
            }
            _ => Vec::new(),
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if !is_test(&node.attrs) {
            let name = self.of(&node.self_ty).to_owned();
            self.scope.push(name);
            visit::visit_item_impl(self, node);
            self.scope.pop();
        }
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.scope.push(node.ident.to_string());
        visit::visit_item_trait(self, node);
        self.scope.pop();
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if !is_test(&node.attrs) {
            self.function(node.sig.ident.to_string(), &node.sig, &node.block, |finder| {
                visit::visit_item_fn(finder, node);
            });
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if !is_test(&node.attrs) {
            self.function(node.sig.ident.to_string(), &node.sig, &node.block, |finder| {
                visit::visit_impl_item_fn(finder, node);
            });
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.function(node.sig.ident.to_string(), &node.sig, block, |finder| {
                visit::visit_trait_item_fn(finder, node);
            });
        }
    }

    fn visit_expr(&mut self, node: &'ast Expr) {
        match node {
            Expr::If(branch) => self.condition(&branch.cond, &["true", "false"]),
            // `true` would go round for ever.
            Expr::While(looped) => self.condition(&looped.cond, &["false"]),
            Expr::Const(_) => return,
            other => {
                let instead = self.of_expression(other);
                self.add_expression(other, instead);
            }
        }
        visit::visit_expr(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Some((_, guard)) = &node.guard {
            self.condition(guard, &["true", "false"]);
        }
        visit::visit_arm(self, node);
    }

    // What is computed while compiling, and what is no expression.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
}

/// Whether something is there for tests alone.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

fn has_let(node: &Expr) -> bool {
    match node {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn is_constant(name: &str) -> bool {
    name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn operators(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["/"],
        BinOp::Div(_) | BinOp::Rem(_) => &["*"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["/="],
        BinOp::DivAssign(_) | BinOp::RemAssign(_) => &["*="],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        _ => &[],
    }
}

fn other_literal(literal: &Lit) -> Vec<String> {
    match literal {
        Lit::Bool(told) => vec![(!told.value).to_string()],
        Lit::Int(number) => match number.base10_parse::<u128>() {
            Ok(value) => vec![format!("{}{}", value + 1, number.suffix())],
            Err(_) => Vec::new(),
        },
        Lit::Float(number) => vec![format!("({number} + 1.0)")],
        _ => Vec::new(),
    }
}

/// What a function of this type can return without having done anything.
fn returned(output: &ReturnType) -> Vec<String> {
    let values = match output {
        ReturnType::Default => vec![String::new()],
        ReturnType::Type(_, of) => values(of),
    };
    values.iter().map(|value| format!("return {value};")).collect()
}

fn values(of: &Type) -> Vec<String> {
    let all = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    match of {
        Type::Never(_) | Type::ImplTrait(_) => Vec::new(),
        Type::Tuple(tuple) if tuple.elems.is_empty() => all(&["()"]),
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(_) => all(&["&[]"]),
            Type::Path(path) if path.path.is_ident("str") => all(&["\"\""]),
            _ => Vec::new(),
        },
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Vec::new() };
            match last.ident.to_string().as_str() {
                "bool" => all(&["true", "false"]),
                "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" | "i128" | "isize" => {
                    all(&["0", "1"])
                }
                "f64" => all(&["0.0", "1.0"]),
                "Option" => all(&["None"]),
                "Result" => match &last.arguments {
                    syn::PathArguments::AngleBracketed(given) => match given.args.first() {
                        Some(syn::GenericArgument::Type(fine)) => {
                            values(fine).iter().map(|value| format!("Ok({value})")).collect()
                        }
                        _ => Vec::new(),
                    },
                    _ => Vec::new(),
                },
                _ => all(&["Default::default()"]),
            }
        }
        _ => all(&["Default::default()"]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, sites};

    fn texts(code: &str) -> Vec<String> {
        let found = sites(code).unwrap();
        let told = |site: &super::Site| match site.place {
            Place::Body => site.instead.clone(),
            Place::Expression => {
                site.instead.iter().map(|by| format!("{} → {by}", &code[site.range.clone()])).collect()
            }
        };
        found.iter().flat_map(told).collect()
    }

    #[test]
    fn comparisons_literals_and_bodies_are_changed() {
        assert_eq!(
            texts("fn f(a: u64) -> bool { a + 1 < LIMIT }"),
            [
                "return true;",
                "return false;",
                "a + 1 < LIMIT → a + 1 <= LIMIT",
                "a + 1 < LIMIT → a + 1 >= LIMIT",
                "a + 1 → a - 1",
                "1 → 2",
                "LIMIT → LIMIT * 2",
                "LIMIT → LIMIT / 2",
            ]
        );
    }

    #[test]
    fn a_chain_with_let_is_changed_in_its_other_parts_alone() {
        assert_eq!(
            texts("fn f() { if a && let Some(b) = c && b { g() } }"),
            ["return ;", "a → true", "b → true"]
        );
    }

    #[test]
    fn tests_patterns_types_and_constants_are_left_alone() {
        assert_eq!(
            texts("const A: u8 = 1; #[cfg(test)] mod t { fn f() { 1 < 2; } } #[test] fn g() { 1 < 2; }"),
            [""; 0]
        );
        assert_eq!(texts("fn f(a: [u8; 4]) { match a[I] { 3 => {} _ => {} } }"), ["return ;"]);
        assert_eq!(texts("const fn f() -> u8 { 1 + 1 }"), [""; 0]);
    }
}
