//! Enumerations whose values have names.

/// An enumeration with the name of each value beside it: `ALL` lists the values in their order, `name` names one.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* pub enum $Kind:ident { $($(#[$story:meta])+ $value:ident = $name:literal,)+ }) => {
        $(#[$about])*
        pub enum $Kind { $($(#[$story])+ $value,)+ }

        impl $Kind {
            /// Every value, in the order of the enumeration.
            pub const ALL: [$Kind; [$($name),+].len()] = [$($Kind::$value),+];

            /// The name in tables and recordings.
            pub const fn name(self) -> &'static str {
                match self { $($Kind::$value => $name,)+ }
            }
        }
    };
}
