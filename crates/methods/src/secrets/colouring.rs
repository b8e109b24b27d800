//! Balanced colouring of the edges of a bipartite multigraph.
//!
//! Rows of two sensitive columns are edges between the secrets of one column and those of the other. A *class* is the set of edges of one colour. No two of
//! its edges meet, so it is a group without conflicts. If no vertex has more edges than there are colours, a colouring exists (D. König: *Über Graphen und
//! ihre Anwendung auf Determinantentheorie und Mengenlehre*, 1916). Exchanges along paths of two colours then make all classes equally large, but for one
//! edge.
//!
//! # Cost
//! Linear in edges times the length of paths, which is at most the number of vertices.

/// Absent edge.
const NONE: u32 = u32::MAX;
/// Colours in a word.
const WORD: usize = u64::BITS as usize;

/// Returns the edges of each of `colours` classes, whose sizes differ by at most 1. Ends of edges are numbers of vertices on each side.
///
/// `None` if a vertex has more edges than there are colours.
pub(super) fn balanced(edges: &[[u32; 2]], colours: usize) -> Option<Vec<Vec<u32>>> {
    let vertices = |side: usize| edges.iter().map(|ends| ends[side] as usize + 1).max().unwrap_or(0);
    let sides = [vertices(0), vertices(1)];
    let mut degrees = vec![0; sides[0] + sides[1]];
    let ends: Vec<[u32; 2]> = edges.iter().map(|&[a, b]| [a, b + sides[0] as u32]).collect();
    ends.iter().flatten().for_each(|&vertex| degrees[vertex as usize] += 1);
    if degrees.into_iter().any(|degree: usize| degree > colours) {
        return None;
    }
    let mut colouring = Colouring::new(ends, sides, colours);
    (0..edges.len()).for_each(|edge| colouring.insert(edge as u32));
    colouring.balance();
    Some(colouring.classes())
}

struct Colouring {
    ends: Vec<[u32; 2]>,
    vertices: usize,
    /// Vertices on the left, which come first.
    left: usize,
    colours: usize,
    /// Words of the free colours of a vertex.
    words: usize,
    /// Edge of each colour at each vertex.
    at: Vec<u32>,
    /// Colours that no edge at a vertex has, as bits.
    free: Vec<u64>,
    /// Sizes of the classes.
    sizes: Vec<usize>,
    /// Next colour to be tried.
    next: usize,
    path: Vec<u32>,
}

impl Colouring {
    fn new(ends: Vec<[u32; 2]>, sides: [usize; 2], colours: usize) -> Self {
        let [left, vertices] = [sides[0], sides[0] + sides[1]];
        let words = colours.div_ceil(WORD);
        let mut free = vec![u64::MAX; vertices * words];
        if !colours.is_multiple_of(WORD) {
            free.chunks_exact_mut(words).for_each(|words| {
                if let Some(last) = words.last_mut() {
                    *last = (1 << (colours % WORD)) - 1;
                }
            });
        }
        let (at, sizes) = (vec![NONE; vertices * colours], vec![0; colours]);
        Self { ends, vertices, left, colours, words, at, free, sizes, next: 0, path: Vec::new() }
    }

    /// Colours an edge. Other edges change their colours if no colour is free at both ends.
    fn insert(&mut self, edge: u32) {
        let [a, b] = self.ends[edge as usize];
        let colour = match self.first_free(&[a, b]) {
            Some(colour) => colour,
            None => {
                // A colour is free at each end, because neither has more edges than there are colours. The path from `b` never comes to `a`: it would
                // come by an edge of a colour that is free there.
                let (Some(colour), Some(other)) = (self.first_free(&[a]), self.first_free(&[b])) else { return };
                self.walk(b, [colour, other]);
                self.exchange([colour, other]);
                colour
            }
        };
        self.put(edge, colour);
        self.next = (colour + 1) % self.colours;
    }

    /// Returns the first colour that is free at all of these vertices.
    fn first_free(&self, vertices: &[u32]) -> Option<usize> {
        let free = |word: usize| {
            vertices.iter().fold(u64::MAX, |free, &vertex| free & self.free[vertex as usize * self.words + word])
        };
        let (first, bit) = (self.next / WORD, self.next % WORD);
        let colour = |word: usize, free: u64| (free != 0).then(|| word * WORD + free.trailing_zeros() as usize);
        colour(first, free(first) & (u64::MAX << bit))
            .or_else(|| (first + 1..self.words).chain(0..=first).find_map(|word| colour(word, free(word))))
    }

    fn at(&self, vertex: u32, colour: usize) -> u32 {
        self.at[vertex as usize * self.colours + colour]
    }

    fn put(&mut self, edge: u32, colour: usize) {
        for vertex in self.ends[edge as usize] {
            self.at[vertex as usize * self.colours + colour] = edge;
            self.free[vertex as usize * self.words + colour / WORD] &= !(1 << (colour % WORD));
        }
        self.sizes[colour] += 1;
    }

    fn take(&mut self, edge: u32, colour: usize) {
        for vertex in self.ends[edge as usize] {
            self.at[vertex as usize * self.colours + colour] = NONE;
            self.free[vertex as usize * self.words + colour / WORD] |= 1 << (colour % WORD);
        }
        self.sizes[colour] -= 1;
    }

    /// Walks from a vertex along edges of two colours in turn, beginning with the first. The vertex has no edge of the second.
    fn walk(&mut self, mut vertex: u32, [mut colour, mut other]: [usize; 2]) {
        self.path.clear();
        loop {
            let edge = self.at(vertex, colour);
            if edge == NONE {
                return;
            }
            self.path.push(edge);
            let [a, b] = self.ends[edge as usize];
            vertex = if vertex == a { b } else { a };
            (colour, other) = (other, colour);
        }
    }

    /// Exchanges the colours of a path that begins with the first.
    fn exchange(&mut self, colours: [usize; 2]) {
        let path = std::mem::take(&mut self.path);
        path.iter().enumerate().for_each(|(place, &edge)| self.take(edge, colours[place % 2]));
        path.iter().enumerate().for_each(|(place, &edge)| self.put(edge, colours[(place + 1) % 2]));
        self.path = path;
    }

    /// Moves an edge from a class to a smaller one.
    ///
    /// Exchanges the two colours of a path that has one more edge of the larger class.
    fn level(&mut self, larger: usize, smaller: usize) {
        // Paths of an even number of edges have as many of both. The larger class has more, so there is another one.
        for vertex in 0..self.vertices as u32 {
            if self.at(vertex, larger) == NONE || self.at(vertex, smaller) != NONE {
                continue;
            }
            self.walk(vertex, [larger, smaller]);
            if self.path.len() % 2 == 1 {
                return self.exchange([larger, smaller]);
            }
        }
    }

    /// Makes all classes equally large, but for one edge.
    fn balance(&mut self) {
        if self.colours == 0 {
            return;
        }
        let (least, most) = (self.ends.len() / self.colours, self.ends.len().div_ceil(self.colours));
        let of = |sizes: &[usize], is: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..sizes.len()).filter(|&colour| is(sizes[colour])).collect()
        };
        let mut over = of(&self.sizes, &|size| size > most);
        let mut under = of(&self.sizes, &|size| size < least);
        let mut high = of(&self.sizes, &|size| size == most && most > least);
        let mut low = of(&self.sizes, &|size| size == least && most > least);
        while !over.is_empty() || !under.is_empty() {
            let (Some(larger), Some(smaller)) = (over.pop().or_else(|| high.pop()), under.pop().or_else(|| low.pop()))
            else {
                return;
            };
            self.level(larger, smaller);
            for colour in [larger, smaller] {
                match self.sizes[colour] {
                    size if size > most => over.push(colour),
                    size if size < least => under.push(colour),
                    size if most > least && size == most => high.push(colour),
                    _ if most > least => low.push(colour),
                    _ => {}
                }
            }
        }
    }

    /// Returns the edges of each class.
    fn classes(self) -> Vec<Vec<u32>> {
        let mut classes: Vec<Vec<u32>> = self.sizes.iter().map(|&size| Vec::with_capacity(size)).collect();
        // Every edge has one end on the left.
        for of_vertex in self.at.chunks_exact(self.colours.max(1)).take(self.left) {
            for (class, &edge) in classes.iter_mut().zip(of_vertex).filter(|(_, edge)| **edge != NONE) {
                class.push(edge);
            }
        }
        classes
    }
}
