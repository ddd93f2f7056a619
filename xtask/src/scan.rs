//! A Rust file as its tokens: enough to find functions, modules, unsafe code and banned calls, also inside macro calls,
//! which a syntax tree would leave opaque.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::ops::RangeInclusive;

/// What the checks want to know of one file.
#[derive(Default)]
pub struct Scan {
    /// All tokens in order, delimiters included.
    pub tokens: Vec<Token>,
    /// Every `fn` with a body.
    pub functions: Vec<Function>,
    /// Every `mod name;`.
    pub modules: Vec<Module>,
    tests: Vec<RangeInclusive<usize>>,
    constants: Vec<RangeInclusive<usize>>,
}

/// One token and its line, counted from 1.
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub struct Function {
    pub name: String,
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub length: usize,
    /// Parameters without `self`; the fields of an anonymous tuple count one by one.
    pub parameters: usize,
    pub has_bool_parameter: bool,
}

/// A module in a file of its own.
#[derive(Debug, PartialEq)]
pub struct Module {
    /// Path below the directory for this file's modules: the inline modules around it, then its name.
    pub path: Vec<String>,
    /// From `#[path = "..."]`.
    pub explicit: Option<String>,
    pub is_test: bool,
}

impl Scan {
    /// # Errors
    /// When the text is not made of Rust tokens.
    pub fn of(text: &str) -> Result<Scan, String> {
        let stream: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
        let mut scan = Scan::default();
        scan.flatten(stream.clone());
        scan.walk(stream, &[]);
        Ok(scan)
    }

    /// Whether the line belongs to an item under `#[test]` or `#[cfg(test)]`.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&line))
    }

    /// Whether the line belongs to a constant, so that what it does happens in the compiler.
    pub fn is_constant(&self, line: usize) -> bool {
        self.constants.iter().any(|range| range.contains(&line))
    }

    /// Lines at which these tokens follow one another.
    pub fn find<'a>(&'a self, pattern: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        self.tokens
            .windows(pattern.len().max(1))
            .filter(move |window| window.iter().map(|token| token.text.as_str()).eq(pattern.iter().copied()))
            .filter_map(|window| window.first().map(|token| token.line))
    }

    fn flatten(&mut self, stream: TokenStream) {
        for tree in stream {
            let TokenTree::Group(group) = tree else {
                self.tokens.push(Token { text: tree.to_string(), line: tree.span().start().line });
                continue;
            };
            let (open, close) = delimiters(group.delimiter());
            self.tokens.push(Token { text: open.to_owned(), line: group.span_open().start().line });
            self.flatten(group.stream());
            self.tokens.push(Token { text: close.to_owned(), line: group.span_close().start().line });
        }
    }

    fn walk(&mut self, stream: TokenStream, inside: &[String]) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut attributes = Attributes::default();
        for (at, tree) in trees.iter().enumerate() {
            let rest = trees.get(at + 1..).unwrap_or_default();
            match tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => attributes.read(tree, rest),
                TokenTree::Punct(punct) if punct.as_char() == ';' => self.close(&mut attributes, tree),
                TokenTree::Ident(ident) if ident == "fn" => self.functions.extend(function(tree, rest)),
                TokenTree::Ident(ident) if ident == "const" && !is_generic(trees.get(..at)) => {
                    self.constants.extend(constant(tree, rest));
                }
                TokenTree::Ident(ident) if ident == "mod" => self.modules.extend(module(rest, inside, &attributes)),
                TokenTree::Group(group) => {
                    self.walk(group.stream(), &below(inside, trees.get(..at).unwrap_or_default(), group));
                    if group.delimiter() == Delimiter::Brace {
                        self.close(&mut attributes, tree);
                    }
                }
                _ => {}
            }
        }
    }

    /// An item ends here: when its attributes made it a test, its lines are remembered.
    fn close(&mut self, attributes: &mut Attributes, end: &TokenTree) {
        if let Some(first) = std::mem::take(attributes).test_from {
            self.tests.push(first..=end.span().end().line);
        }
    }
}

/// The attributes read since the last item ended.
#[derive(Default)]
struct Attributes {
    test_from: Option<usize>,
    path: Option<String>,
}

impl Attributes {
    fn read(&mut self, hash: &TokenTree, rest: &[TokenTree]) {
        let is_inner = is_punct(rest.first(), '!');
        let Some(TokenTree::Group(body)) = rest.get(usize::from(is_inner)) else { return };
        if body.delimiter() != Delimiter::Bracket {
            return;
        }
        let words: Vec<String> =
            body.to_string().split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect();
        let says = |word: &str| words.iter().any(|found| found == word);
        let first = words.iter().find(|word| !word.is_empty()).map(String::as_str);
        let line = hash.span().start().line;
        match first {
            Some("test") => self.test_from = self.test_from.or(Some(line)),
            Some("cfg") if says("test") && !says("not") => self.test_from = self.test_from.or(Some(line)),
            Some("path") => self.path = quoted(&body.to_string()),
            _ => {}
        }
    }
}

fn quoted(text: &str) -> Option<String> {
    text.split('"').nth(1).map(str::to_owned)
}

fn delimiters(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

fn is_punct(tree: Option<&TokenTree>, character: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

/// The inline modules around the content of `group`: one more when the tokens before it are `mod name`.
fn below(inside: &[String], before: &[TokenTree], group: &Group) -> Vec<String> {
    let mut path = inside.to_vec();
    if group.delimiter() == Delimiter::Brace
        && let [.., TokenTree::Ident(keyword), TokenTree::Ident(name)] = before
        && keyword == "mod"
    {
        path.push(name.to_string());
    }
    path
}

/// Walks over `trees` and says for each whether it stands inside `<...>`; an arrow's `>` closes nothing.
fn outside_angles(trees: &[TokenTree]) -> impl Iterator<Item = (&TokenTree, bool)> {
    let mut depth = 0_usize;
    let mut before = ' ';
    trees.iter().map(move |tree| {
        let character = if let TokenTree::Punct(punct) = tree { punct.as_char() } else { ' ' };
        let was_outside = depth == 0;
        match character {
            '<' => depth += 1,
            '>' if before != '-' && before != '=' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = character;
        (tree, was_outside)
    })
}

fn function(keyword: &TokenTree, rest: &[TokenTree]) -> Option<Function> {
    let TokenTree::Ident(name) = rest.first()? else { return None };
    let mut parameters = None;
    for (tree, is_outside) in outside_angles(rest.get(1..)?) {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
            TokenTree::Group(group)
                if is_outside && group.delimiter() == Delimiter::Parenthesis && parameters.is_none() =>
            {
                parameters = Some(group.stream());
            }
            TokenTree::Group(group) if is_outside && group.delimiter() == Delimiter::Brace => {
                let line = keyword.span().start().line;
                let list = split_parameters(parameters?);
                return Some(Function {
                    name: name.to_string(),
                    line,
                    length: group.span_close().end().line + 1 - line,
                    parameters: list.iter().map(|text| fields(text)).sum(),
                    has_bool_parameter: list.iter().any(|text| text.ends_with(": bool")),
                });
            }
            _ => {}
        }
    }
    None
}

/// The parameters as text, `self` left out.
fn split_parameters(stream: TokenStream) -> Vec<String> {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut list = vec![String::new()];
    for (tree, is_outside) in outside_angles(&trees) {
        if is_outside && is_punct(Some(tree), ',') {
            list.push(String::new());
        } else if let Some(last) = list.last_mut() {
            if !last.is_empty() && !is_punct(Some(tree), ':') {
                last.push(' ');
            }
            last.push_str(&tree.to_string());
        }
    }
    let is_self = |text: &str| text.split([' ', ':', '&']).any(|word| word == "self");
    list.retain(|text| !text.is_empty() && !is_self(text));
    list
}

/// How many values a parameter hands over: those of a tuple, also behind a reference, or one.
fn fields(parameter: &str) -> usize {
    let kind = parameter.split_once(": ").map_or(parameter, |(_, kind)| kind);
    let kind = kind.trim_start_matches('&').trim_start().trim_start_matches("mut ").trim_start();
    let Some(TokenTree::Group(group)) = kind.parse::<TokenStream>().ok().and_then(|stream| stream.into_iter().next())
    else {
        return 1;
    };
    let is_tuple = group.delimiter() == Delimiter::Parenthesis;
    if is_tuple { split_parameters(group.stream()).len() } else { 1 }
}

/// The lines of `const NAME: T = ...;` or `const { ... }`; a `const fn` is not one.
fn constant(keyword: &TokenTree, rest: &[TokenTree]) -> Option<RangeInclusive<usize>> {
    let first = keyword.span().start().line;
    match rest {
        [TokenTree::Group(block), ..] if block.delimiter() == Delimiter::Brace => {
            Some(first..=block.span_close().end().line)
        }
        [TokenTree::Ident(_), colon, ..] if is_punct(Some(colon), ':') => {
            let end = rest.iter().find(|tree| is_punct(Some(tree), ';'))?;
            Some(first..=end.span().end().line)
        }
        _ => None,
    }
}

/// A `const` after one of these is a generic parameter.
fn is_generic(before: Option<&[TokenTree]>) -> bool {
    let last = before.and_then(<[TokenTree]>::last);
    is_punct(last, '<') || is_punct(last, ',')
}

fn module(rest: &[TokenTree], inside: &[String], attributes: &Attributes) -> Option<Module> {
    let [TokenTree::Ident(name), end, ..] = rest else { return None };
    is_punct(Some(end), ';').then(|| Module {
        path: inside.iter().cloned().chain([name.to_string()]).collect(),
        explicit: attributes.path.clone(),
        is_test: attributes.test_from.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_fn_to_brace_also_inside_macros() {
        let scan = Scan::of(
            "proptest! {\n fn outer<F: Fn(u8) -> bool>(&mut self, a: Vec<(u8, u8)>, flag: bool,) -> u8\n where F: Copy {\n 1\n }\n}\n\
             trait T { fn bodiless(x: u8); }\n type P = fn(u8);",
        )
        .unwrap();
        let expected =
            Function { name: "outer".to_owned(), line: 2, length: 4, parameters: 2, has_bool_parameter: true };
        assert_eq!(scan.functions, [expected]);
    }

    #[test]
    fn the_fields_of_a_tuple_are_parameters() {
        let count = |list: &str| Scan::of(&format!("fn f({list}) {{}}")).unwrap().functions[0].parameters;
        assert_eq!(count("&self, at: u8, (kind, row): (i32, Row<u8, u8>)"), 3);
        assert_eq!(count("both: &mut (A, (B, C)), list: &[(A, B)], unit: ()"), 3);
        assert_eq!(count("make: impl Fn((A, B)) -> C, array: [(A, B); 2]"), 2);
    }

    #[test]
    fn test_items_are_distinguished_from_the_rest() {
        let scan =
            Scan::of("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n#[cfg(not(test))]\nfn c() {}\n").unwrap();
        assert_eq!((1..=7).filter(|&line| scan.is_test(line)).collect::<Vec<_>>(), [2, 3, 4, 5]);
    }

    #[test]
    fn modules_know_their_place_and_their_attributes() {
        let scan = Scan::of("mod a;\nmod b { mod c; }\n#[cfg(test)] mod d;\n#[path = \"other.rs\"] mod e;").unwrap();
        let found: Vec<_> = scan.modules.iter().map(|m| (m.path.join("/"), m.is_test, m.explicit.as_deref())).collect();
        let expected = [("a", false, None), ("b/c", false, None), ("d", true, None), ("e", false, Some("other.rs"))];
        assert_eq!(found, expected.map(|(path, is_test, explicit)| (path.to_owned(), is_test, explicit)));
    }

    #[test]
    fn comments_and_strings_hold_no_tokens() {
        let scan =
            Scan::of("/// panic!()\nfn a() { let _ = \"panic!()\"; /* panic!() */ }\nfn b() { panic!() }").unwrap();
        assert_eq!(scan.find(&["panic", "!"]).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn what_a_constant_does_is_known_as_such() {
        let scan = Scan::of(
            "const A: () =\n assert!(true);\nconst fn b<const N: u8>() {\n}\nfn c() { const { assert!(true) } }",
        )
        .unwrap();
        assert_eq!((1..=5).filter(|&line| scan.is_constant(line)).collect::<Vec<_>>(), [1, 2, 5]);
    }

    #[test]
    fn text_that_is_not_rust_is_an_error() {
        assert!(Scan::of("fn a() {").is_err());
    }
}
