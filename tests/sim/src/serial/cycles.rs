//! Cycles in a directed graph: strongly connected components of more than one node, by Tarjan, without recursion.

/// Edges by node.
pub(super) type Graph = Vec<Vec<usize>>;

/// The components with more than one node.
pub(super) fn find(graph: &Graph) -> Vec<Vec<usize>> {
    let mut search = Search {
        graph,
        next: 1,
        order: vec![0; graph.len()],
        low: vec![0; graph.len()],
        on_stack: vec![false; graph.len()],
        stack: Vec::new(),
        found: Vec::new(),
    };
    for node in 0..graph.len() {
        if search.order[node] == 0 {
            search.from(node);
        }
    }
    search.found
}

/// A shortest way from a node back to itself within a component.
pub(super) fn shortest(graph: &Graph, component: &[usize]) -> Vec<usize> {
    let inside: std::collections::BTreeSet<_> = component.iter().copied().collect();
    // A few starting points are enough for a message.
    let from = component.iter().take(20).filter_map(|start| {
        let mut before = std::collections::BTreeMap::new();
        let mut reached = std::collections::VecDeque::from([*start]);
        while let Some(node) = reached.pop_front() {
            for next in graph[node].iter().filter(|next| inside.contains(next)) {
                if next == start {
                    let mut way = vec![node];
                    while let Some(node) = before.get(way.last()?) {
                        way.push(*node);
                    }
                    way.reverse();
                    return Some(way);
                }
                if !before.contains_key(next) {
                    before.insert(*next, node);
                    reached.push_back(*next);
                }
            }
        }
        None
    });
    from.min_by_key(Vec::len).unwrap_or_default()
}

struct Search<'graph> {
    graph: &'graph Graph,
    next: usize,
    /// When a node was first met; 0 if it was not.
    order: Vec<usize>,
    /// The earliest node on the stack that can be reached.
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn from(&mut self, start: usize) {
        let mut path = vec![(start, 0)];
        self.meet(start);
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            if let Some(next) = self.graph[node].get(*edge).copied() {
                *edge += 1;
                if self.order[next] == 0 {
                    self.meet(next);
                    path.push((next, 0));
                } else if self.on_stack[next] {
                    self.low[node] = self.low[node].min(self.order[next]);
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                self.low[*parent] = self.low[*parent].min(self.low[node]);
            }
            if self.low[node] == self.order[node] {
                self.leave(node);
            }
        }
    }

    fn meet(&mut self, node: usize) {
        (self.order[node], self.low[node]) = (self.next, self.next);
        self.next += 1;
        self.on_stack[node] = true;
        self.stack.push(node);
    }

    /// Takes a finished component off the stack.
    fn leave(&mut self, first: usize) {
        let start = self.stack.iter().rposition(|node| *node == first).expect("it is on the stack");
        let component = self.stack.split_off(start);
        component.iter().for_each(|node| self.on_stack[*node] = false);
        if component.len() > 1 {
            self.found.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_found_and_a_diamond_is_none() {
        assert_eq!(find(&vec![vec![1, 2], vec![3], vec![3], vec![]]), Vec::<Vec<usize>>::new());
        let graph = vec![vec![1], vec![2, 3], vec![0], vec![4], vec![3], vec![0]];
        let mut found = find(&graph);
        found.iter_mut().for_each(|component| component.sort_unstable());
        found.sort();
        assert_eq!(found, [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(shortest(&graph, &[0, 1, 2]), [0, 1, 2]);
    }
}
