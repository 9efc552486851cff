//! EPICS's libca, the client library of Channel Access, with preemptive callbacks: they run in threads of the library.
//! Its functions and structures are those of cadef.h and db_access.h of EPICS Base 7.

use std::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_void};
use std::path::Path;
use std::sync::OnceLock;

use libloading::{Library, Symbol};

const PREEMPTIVE_CALLBACK: c_int = 1;
pub const NORMAL: c_int = 1;
pub const CONNECTION_UP: c_long = 6;
pub const DBE_VALUE: c_long = 1;
pub const DBE_LOG: c_long = 2;
pub const DBE_ALARM: c_long = 4;
pub const DBE_PROPERTY: c_long = 8;
/// Field types; the types DBR_TIME_… are in their order.
pub const STRING: c_short = 0;
pub const SHORT: c_short = 1;
pub const FLOAT: c_short = 2;
pub const ENUM: c_short = 3;
pub const CHAR: c_short = 4;
pub const LONG: c_short = 5;
pub const DOUBLE: c_short = 6;
pub const DBR_TIME: c_long = 14;
pub const DBR_GR_ENUM: c_long = 24;
/// The server gives the properties of all numbers in this form.
pub const DBR_GR_DOUBLE: c_long = 27;

/// A channel or a subscription.
pub type Id = *mut c_void;

#[repr(C)]
pub struct ConnectionArguments {
    pub channel: Id,
    pub operation: c_long,
}

#[repr(C)]
pub struct EventArguments {
    pub user: *const c_void,
    pub channel: Id,
    pub kind: c_long,
    pub count: c_long,
    pub value: *const c_void,
    pub status: c_int,
}

pub type OnConnection = extern "C" fn(ConnectionArguments);
pub type OnEvent = extern "C" fn(EventArguments);

/// The functions of the opened library.
pub struct Libca {
    pub context_create: unsafe extern "C" fn(c_int) -> c_int,
    pub context_destroy: unsafe extern "C" fn(),
    pub create_channel:
        unsafe extern "C" fn(*const c_char, OnConnection, *const c_void, c_uint, *mut Id) -> c_int,
    pub clear_channel: unsafe extern "C" fn(Id) -> c_int,
    pub puser: unsafe extern "C" fn(Id) -> *const c_void,
    pub field_type: unsafe extern "C" fn(Id) -> c_short,
    pub element_count: unsafe extern "C" fn(Id) -> c_ulong,
    pub create_subscription:
        unsafe extern "C" fn(c_long, c_ulong, Id, c_long, OnEvent, *const c_void, *mut Id) -> c_int,
    pub clear_subscription: unsafe extern "C" fn(Id) -> c_int,
    pub array_get_callback: unsafe extern "C" fn(c_long, c_ulong, Id, OnEvent, *const c_void) -> c_int,
    pub flush_io: unsafe extern "C" fn() -> c_int,
    // the functions are valid while it is open
    _library: Library,
}

static OPENED: OnceLock<Libca> = OnceLock::new();

impl Libca {
    /// The library at `path`, with a context for this thread, which alone creates and clears channels.
    pub fn attach(path: &Path) -> Result<&'static Self, String> {
        let opened = match OPENED.get() {
            Some(opened) => opened,
            None => {
                let opened = Self::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
                OPENED.get_or_init(|| opened)
            }
        };
        // SAFETY: the call follows cadef.h
        match unsafe { (opened.context_create)(PREEMPTIVE_CALLBACK) } {
            NORMAL => Ok(opened),
            status => Err(format!("ca_context_create: status {status}")),
        }
    }

    /// The opened library, in a callback of it.
    pub fn opened() -> Option<&'static Self> {
        OPENED.get()
    }

    fn open(path: &Path) -> Result<Self, libloading::Error> {
        /// # Safety
        /// `T` is the function's type.
        unsafe fn function<T: Copy>(library: &Library, name: &[u8]) -> Result<T, libloading::Error> {
            unsafe { library.get(name) }.map(|symbol: Symbol<'_, T>| *symbol)
        }
        // SAFETY: the library is EPICS's, whose constructors have no conditions; the types are those of cadef.h
        unsafe {
            let library = Library::new(path)?;
            Ok(Self {
                context_create: function(&library, b"ca_context_create\0")?,
                context_destroy: function(&library, b"ca_context_destroy\0")?,
                create_channel: function(&library, b"ca_create_channel\0")?,
                clear_channel: function(&library, b"ca_clear_channel\0")?,
                puser: function(&library, b"ca_puser\0")?,
                field_type: function(&library, b"ca_field_type\0")?,
                element_count: function(&library, b"ca_element_count\0")?,
                create_subscription: function(&library, b"ca_create_subscription\0")?,
                clear_subscription: function(&library, b"ca_clear_subscription\0")?,
                array_get_callback: function(&library, b"ca_array_get_callback\0")?,
                flush_io: function(&library, b"ca_flush_io\0")?,
                _library: library,
            })
        }
    }
}
