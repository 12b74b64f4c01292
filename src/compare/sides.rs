//! One or more of a kind on each side.

/// Side A, which is held to be good, and side B, which is held against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides<T> {
    /// What is compared with.
    pub a: Vec<T>,
    /// What is compared.
    pub b: Vec<T>,
}

impl<T> Sides<T> {
    /// Everything, side A first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.a.iter().chain(&self.b)
    }

    /// The same of each.
    pub(super) fn map<'s, U>(&'s self, of: impl Fn(&'s T) -> U) -> Sides<U> {
        Sides { a: self.a.iter().map(&of).collect(), b: self.b.iter().map(&of).collect() }
    }

    /// The same of each, unless one of them has none.
    pub(super) fn present<'s, U>(&'s self, of: impl Fn(&'s T) -> Option<U>) -> Option<Sides<U>> {
        let side = |side: &'s [T]| side.iter().map(&of).collect::<Option<Vec<U>>>();
        Some(Sides { a: side(&self.a)?, b: side(&self.b)? })
    }

    /// Whether something is equal of all.
    pub(super) fn agree<'s, U: PartialEq>(&'s self, of: impl Fn(&'s T) -> U) -> bool {
        let mut values = self.iter().map(of);
        let first = values.next();
        values.all(|value| Some(value) == first)
    }

    /// Names that any of them has, in the order in which they first occur.
    pub(super) fn names<'s, N: PartialEq, I: IntoIterator<Item = N>>(
        &'s self,
        of: impl Fn(&'s T) -> I,
    ) -> Vec<N> {
        let mut names = Vec::new();
        for name in self.iter().flat_map(of) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
