//! One script from the page's modules, and one style sheet from its styles, so that a page takes a handful of requests
//! and not one per file. The sources stay plain ES modules, which Node tests as they are.
//!
//! A module becomes a function that returns its exports, run once and in the order in which a browser would run it.
//! What must hold for that, and fails a test otherwise: `import` and `export` begin their lines and are written on one,
//! modules import each other without cycles, and nothing assigns to an export later (it is copied when it is returned).

use std::fmt::Write;

/// Where the source of a module is found by its name, such as `lib/api.js`.
pub(super) type Sources<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// The script for `entry` and all that it imports, to be run as a classic script. Fails with a sentence.
pub(super) fn script(entry: &str, sources: Sources<'_>) -> Result<String, String> {
    let mut bundle = Bundle {
        sources,
        text: "(() => {\n\"use strict\";\n".to_owned(),
        begun: Vec::new(),
        done: Vec::new(),
    };
    bundle.add(entry)?;
    bundle.text.push_str("})();\n");
    Ok(bundle.text)
}

struct Bundle<'a> {
    sources: Sources<'a>,
    text: String,
    /// The modules whose imports are being added.
    begun: Vec<String>,
    done: Vec<String>,
}

impl Bundle<'_> {
    /// Adds a module after those that it imports, unless it is there already.
    fn add(&mut self, name: &str) -> Result<(), String> {
        if self.done.iter().any(|done| done == name) {
            return Ok(());
        }
        if self.begun.iter().any(|begun| begun == name) {
            return Err(format!("{name} imports itself, by way of others"));
        }
        self.begun.push(name.to_owned());
        let source = (self.sources)(name).ok_or_else(|| format!("there is no {name}"))?;
        let module = Module::read(name, source)?;
        for imported in &module.imported {
            self.add(imported)?;
        }
        // Writing to a string cannot fail.
        let _ = write!(
            self.text,
            "const {} = (() => {{\n{}return {{ {} }};\n}})();\n",
            variable(name),
            module.body,
            module.exports.join(", ")
        );
        self.begun.pop();
        self.done.push(name.to_owned());
        Ok(())
    }
}

/// The variable that holds a module's exports.
fn variable(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("${}", name.trim_end_matches(".js").chars().map(word).collect::<String>())
}

#[derive(Default)]
struct Module {
    imported: Vec<String>,
    /// The source, with its imports read from variables and without the word `export`.
    body: String,
    /// Properties of an object literal.
    exports: Vec<String>,
}

impl Module {
    fn read(name: &str, source: &str) -> Result<Self, String> {
        let mut module = Self::default();
        // Minified code has its exports at the end of its only line.
        let (source, last) = match source.rsplit_once(";export{") {
            Some((source, last)) => (source, Some(format!("export {{{last}"))),
            None => (source, None),
        };
        for line in source.lines().chain(last.as_deref().map(str::trim_end)) {
            let read = if let Some(rest) = line.strip_prefix("import ") {
                module.import(name, rest)
            } else if let Some(rest) = line.strip_prefix("export ") {
                module.export(name, rest)
            } else {
                module.line(line);
                Some(())
            };
            read.ok_or_else(|| format!("{name} has a line that the bundle cannot take: {line}"))?;
        }
        Ok(module)
    }

    /// `Default, { a, b as c } from "./x.js";`, or `* as all from …`.
    fn import(&mut self, name: &str, statement: &str) -> Option<()> {
        let (clause, from) = self.from(name, statement)?;
        if let Some(all) = clause.strip_prefix("* as ") {
            self.line(&format!("const {all} = {from};"));
            return Some(());
        }
        let (default, named) = match clause.split_once('{') {
            Some((default, named)) => (default.trim().trim_end_matches(','), named.strip_suffix('}')?),
            None => (clause, ""),
        };
        let default = (!default.is_empty()).then(|| format!("default: {default}"));
        let named = specifiers(named)
            .map(|(theirs, ours)| if theirs == ours { ours.to_owned() } else { format!("{theirs}: {ours}") });
        let bound: Vec<String> = default.into_iter().chain(named).collect();
        self.line(&format!("const {{ {} }} = {from};", bound.join(", ")));
        Some(())
    }

    /// What follows `export`: names, names of another module, or a declaration.
    fn export(&mut self, name: &str, statement: &str) -> Option<()> {
        if let Some(clause) = statement.strip_prefix('{') {
            let from = if statement.contains(" from ") {
                format!("{}.", self.from(name, statement)?.1)
            } else {
                String::new()
            };
            let named = clause.split_once('}')?.0;
            self.exports.extend(specifiers(named).map(|(ours, theirs)| format!("{theirs}: {from}{ours}")));
            return Some(());
        }
        let (declaration, default) = match statement.strip_prefix("default ") {
            Some(declaration) => (declaration, true),
            None => (statement, false),
        };
        let words = declaration.strip_prefix("async ").unwrap_or(declaration);
        // A variable that can be assigned to would have to be looked up each time.
        let named = ["function* ", "function ", "class ", "const "]
            .iter()
            .find_map(|word| words.strip_prefix(word))?;
        let end = named.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(named.len());
        let declared = named.get(..end).filter(|declared| !declared.is_empty())?;
        self.exports.push(if default { format!("default: {declared}") } else { declared.to_owned() });
        self.line(declaration);
        Some(())
    }

    /// The clause of a statement before `from`, and the variable of the module that it names.
    fn from<'s>(&mut self, name: &str, statement: &'s str) -> Option<(&'s str, String)> {
        let (clause, path) = statement.rsplit_once(" from \"")?;
        let imported = resolve(name, path.strip_suffix("\";")?)?;
        let variable = variable(&imported);
        self.imported.push(imported);
        Some((clause.trim(), variable))
    }

    fn line(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }
}

/// The pairs of `a, b as c`.
fn specifiers(named: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = named.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(" as ").unwrap_or((part, part)))
}

/// The name of the module at a relative path, as seen from another.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    path.starts_with('.').then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundled(modules: &[(&str, &str)]) -> Result<String, String> {
        let find = |wanted: &str| modules.iter().find(|(name, _)| *name == wanted).map(|(_, text)| *text);
        script(modules[0].0, &find)
    }

    #[test]
    fn modules_come_after_what_they_import_and_once() {
        let bundle = bundled(&[
            (
                "app.js",
                "import Page, { go as visit } from \"./pages/one.js\";\nimport * as all from \"./lib/a.js\";\nvisit(Page, all);\n",
            ),
            (
                "pages/one.js",
                "import { a } from \"../lib/a.js\";\nexport default function Page() {}\nexport async function go() { a(); }\n",
            ),
            ("lib/a.js", "export const a = 1;\nexport { b as c } from \"./b.js\";\n"),
            ("lib/b.js", "var x,y;const q=2;export{q as b,x as d};\n"),
        ]);
        let expected = "(() => {\n\"use strict\";\n\
            const $lib_b = (() => {\nvar x,y;const q=2\nreturn { b: q, d: x };\n})();\n\
            const $lib_a = (() => {\nconst a = 1;\nreturn { a, c: $lib_b.b };\n})();\n\
            const $pages_one = (() => {\nconst { a } = $lib_a;\nfunction Page() {}\nasync function go() { a(); }\nreturn { default: Page, go };\n})();\n\
            const $app = (() => {\nconst { default: Page, go: visit } = $pages_one;\nconst all = $lib_a;\nvisit(Page, all);\nreturn {  };\n})();\n\
            })();\n";
        assert_eq!(bundle.unwrap(), expected);
    }

    #[test]
    fn what_it_cannot_take_is_an_error_that_names_the_module() {
        let cyclic =
            [("a.js", "import { b } from \"./b.js\";\n"), ("b.js", "import { a } from \"./a.js\";\n")];
        assert!(bundled(&cyclic).unwrap_err().contains("a.js imports itself"));
        for line in [
            "import { a } from \"./none.js\";",
            "import { a } from \"elsewhere\";",
            "import { a } from \"../up.js\";",
            "import \"./a.js\";",
            "import {",
            "export let a = 1;",
            "export default 7;",
            "export * from \"./a.js\";",
        ] {
            assert!(bundled(&[("a.js", line)]).is_err(), "{line}");
        }
    }
}
