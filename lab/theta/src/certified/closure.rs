//! Bounds on differences, tightened by shortest paths.

/// Nothing is known. Small enough that two of them can be added.
pub(super) const UNBOUNDED: i64 = i64::MAX / 4;

/// Upper bounds on `value[to] - value[from]` for each pair of nodes, in picoseconds. Node 0 has the value 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Differences {
    nodes: usize,
    most: Vec<i64>,
}

/// No values satisfy the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

impl Differences {
    pub(super) fn unbounded(nodes: usize) -> Self {
        let mut most = vec![UNBOUNDED; nodes * nodes];
        (0..nodes).for_each(|node| most[node * nodes + node] = 0);
        Differences { nodes, most }
    }

    pub(super) fn most(&self, from: usize, to: usize) -> i64 {
        self.most[from * self.nodes + to]
    }

    /// Adds the constraint `value[to] - value[from] <= most`.
    pub(super) fn limit(&mut self, from: usize, to: usize, most: i64) {
        let bound = &mut self.most[from * self.nodes + to];
        *bound = (*bound).min(most);
    }

    /// Takes back every constraint on `node`.
    pub(super) fn forget(&mut self, node: usize) {
        for other in (0..self.nodes).filter(|&other| other != node) {
            self.most[node * self.nodes + other] = UNBOUNDED;
            self.most[other * self.nodes + node] = UNBOUNDED;
        }
    }

    /// The same bounds without the last node; those that it brought about between others stay.
    pub(super) fn without_last(&self) -> Self {
        let nodes = self.nodes - 1;
        let rows = self.most.chunks(self.nodes).take(nodes);
        Differences { nodes, most: rows.flat_map(|row| &row[..nodes]).copied().collect() }
    }

    /// All constraints of both.
    pub(super) fn meet(&mut self, other: &Differences) {
        for (bound, also) in self.most.iter_mut().zip(&other.most) {
            *bound = (*bound).min(*also);
        }
    }

    /// The same bounds after every node but 0 may have moved by `moved[node]`.
    pub(super) fn loosened(&self, moved: &[i64]) -> Self {
        let mut loose = self.clone();
        for from in 0..self.nodes {
            for to in (0..self.nodes).filter(|&to| to != from) {
                let bound = &mut loose.most[from * self.nodes + to];
                if *bound < UNBOUNDED {
                    *bound = bound.saturating_add(moved[from]).saturating_add(moved[to]).min(UNBOUNDED);
                }
            }
        }
        loose
    }

    /// The tightest bounds that follow (Floyd and Warshall). A cycle of negative length is a contradiction.
    pub(super) fn close(&mut self) -> Result<(), Contradiction> {
        let nodes = self.nodes;
        for middle in 0..nodes {
            for from in 0..nodes {
                let first = self.most(from, middle);
                if first >= UNBOUNDED {
                    continue;
                }
                for to in 0..nodes {
                    let around = first.saturating_add(self.most(middle, to));
                    self.limit(from, to, around);
                }
            }
        }
        if (0..nodes).any(|node| self.most(node, node) < 0) { Err(Contradiction) } else { Ok(()) }
    }
}
