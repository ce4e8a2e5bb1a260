//! The ways into the library.

/// Defines a function of the header that returns a result.
///
/// Each argument is written as what the body sees, the kind of argument (a type of `args` with a function `read`), and
/// the parameters of C that it is made of. The body is a `Result<c_int, Failure>`. Panics, in the reading of arguments
/// too, become errors.
macro_rules! export {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($( $arg:ident: $kind:ty = ($($raw:ident: $type:ty),+) ),* $(,)?) $body:block
    )*) => {$(
        $(#[$doc])*
        #[no_mangle]
        pub unsafe extern "C" fn $name($($($raw: $type,)+)* error: *mut $crate::abi::HmError) -> std::ffi::c_int {
            let body = || -> Result<std::ffi::c_int, $crate::failure::Failure> {
                // SAFETY: these are the arguments of this call, which the caller vouches for: what they point at is
                // valid for as long as the call takes. What they were read into does not outlive it.
                $(let $arg = unsafe { <$kind>::read(stringify!($arg), $($raw),+) }?;)*
                $body
            };
            // SAFETY: `error` is NULL or the caller's to write.
            unsafe { $crate::failure::guard(error, body) }
        }
    )*};
}

/// Defines two functions of the header from one body: one to which the key is named by its bytes, and its sister
/// `..._at`, to which it is named by an `hm_key`. To the body the key is something that becomes a `Key`.
macro_rules! export_by_key {
    ($(
        $(#[$doc:meta])*
        fn $name:ident | $at:ident($store:ident, $key:ident
            $(, $arg:ident: $kind:ty = ($($raw:ident: $type:ty),+))* $(,)?) $body:block
    )*) => {$(
        export! {
            $(#[$doc])*
            fn $name(
                $store: $crate::args::Open = (store: *mut $crate::handle::HmStore),
                $key: $crate::args::Bytes = (key: *const std::ffi::c_void, key_len: usize),
                $($arg: $kind = ($($raw: $type),+),)*
            ) $body

            $(#[$doc])*
            fn $at(
                $store: $crate::args::Open = (store: *mut $crate::handle::HmStore),
                $key: $crate::key::Named = (key: *const $crate::abi::HmKey),
                $($arg: $kind = ($($raw: $type),+),)*
            ) $body
        }
    )*};
}
