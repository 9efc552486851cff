//! EPICS's libca, the client library of Channel Access: monitors of single values with alarm and time stamp. Its
//! functions and structures are those of cadef.h and db_access.h of EPICS Base 7.

use std::ffi::{c_char, c_int, c_long, c_short, c_uint, c_ulong, c_void, CStr};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use libloading::Library;
use parking_lot::Mutex;

/// Callbacks run in threads of the library.
const PREEMPTIVE_CALLBACK: c_int = 1;
pub(crate) const NORMAL: c_int = 1;
const CONNECTION_UP: c_long = 6;
const VALUE_OR_ALARM: c_long = 1 | 4;
/// The first of the types DBR_TIME_…, which are in the order of the field types.
pub(crate) const DBR_TIME: c_long = 14;
/// EPICS time stamps count from 1990.
pub(crate) const EPOCH: i64 = 631_152_000;

type Channel = *mut c_void;

#[repr(C)]
struct ConnectionArguments {
    channel: Channel,
    operation: c_long,
}

#[repr(C)]
pub struct EventArguments {
    pub user: *const c_void,
    pub channel: Channel,
    pub kind: c_long,
    pub count: c_long,
    pub value: *const c_void,
    pub status: c_int,
}

/// The beginning of each structure dbr_time_….
#[repr(C)]
struct Header {
    status: c_short,
    severity: c_short,
    seconds: u32,
    nanoseconds: u32,
}

type Puser = unsafe extern "C" fn(Channel) -> *const c_void;
type OnConnection = extern "C" fn(ConnectionArguments);
type OnEvent = extern "C" fn(EventArguments);

/// A value sent by a monitor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Whole(i64),
    Float(f64),
    /// Texts and arrays are not read.
    Text,
    Array,
}

#[derive(Clone, Copy, Debug)]
pub struct Update {
    pub value: Value,
    pub severity: u16,
    pub status: u16,
    /// Since 1970.
    pub seconds: i64,
    pub nanoseconds: u32,
}

/// Receives the events of a process variable, in the library's threads.
pub trait Listener: Sync {
    fn update(&self, update: Update);
    /// The connection, or the right to read, has been lost.
    fn lost(&self);
}

/// Finds the Monitor of a channel whose connection has changed.
static PUSER: OnceLock<Puser> = OnceLock::new();

/// The functions of an opened library, with its own context.
pub struct Libca {
    create_channel:
        unsafe extern "C" fn(*const c_char, OnConnection, *const c_void, c_uint, *mut Channel) -> c_int,
    create_subscription: unsafe extern "C" fn(
        c_long,
        c_ulong,
        Channel,
        c_long,
        OnEvent,
        *const c_void,
        *mut *mut c_void,
    ) -> c_int,
    clear_subscription: unsafe extern "C" fn(*mut c_void) -> c_int,
    field_type: unsafe extern "C" fn(Channel) -> c_short,
    element_count: unsafe extern "C" fn(Channel) -> c_ulong,
    flush: unsafe extern "C" fn() -> c_int,
    // the functions are valid while it is open
    _library: Library,
}

/// A process variable that is searched for or connected.
struct Monitor {
    libca: &'static Libca,
    listener: &'static dyn Listener,
    is_array: AtomicBool,
    subscription: Mutex<Option<Subscription>>,
}

struct Subscription {
    field_type: c_short,
    id: *mut c_void,
}

// SAFETY: libca's functions may be called with an id in any thread of its context
unsafe impl Send for Subscription {}

impl Libca {
    /// Opens the library. Monitors must be added in the same thread.
    pub fn open(path: &Path) -> Result<Self, String> {
        let fault = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: the library is EPICS's, whose constructors have no conditions; the types are those of cadef.h
        let (libca, create_context) = unsafe {
            let library = Library::new(path).map_err(fault)?;
            let puser = *library.get::<Puser>(b"ca_puser\0").map_err(fault)?;
            let create_context = *library
                .get::<unsafe extern "C" fn(c_int) -> c_int>(b"ca_context_create\0")
                .map_err(fault)?;
            PUSER.get_or_init(|| puser);
            let libca = Self {
                create_channel: *library.get(b"ca_create_channel\0").map_err(fault)?,
                create_subscription: *library.get(b"ca_create_subscription\0").map_err(fault)?,
                clear_subscription: *library.get(b"ca_clear_subscription\0").map_err(fault)?,
                field_type: *library.get(b"ca_field_type\0").map_err(fault)?,
                element_count: *library.get(b"ca_element_count\0").map_err(fault)?,
                flush: *library.get(b"ca_flush_io\0").map_err(fault)?,
                _library: library,
            };
            (libca, create_context)
        };
        // SAFETY: the call follows cadef.h
        match unsafe { create_context(PREEMPTIVE_CALLBACK) } {
            NORMAL => Ok(libca),
            status => Err(format!("ca_context_create: status {status}")),
        }
    }

    /// Monitors a process variable until the process ends.
    pub fn monitor(&'static self, name: &CStr, listener: &'static dyn Listener) -> Result<(), String> {
        let (is_array, subscription) = (AtomicBool::new(false), Mutex::new(None));
        let monitor: &'static Monitor =
            Box::leak(Box::new(Monitor { libca: self, listener, is_array, subscription }));
        let mut channel = ptr::null_mut();
        // SAFETY: the name ends with a NUL; `monitor` lives as long as the process
        let status = unsafe {
            (self.create_channel)(
                name.as_ptr(),
                on_connection,
                ptr::from_ref(monitor).cast(),
                0,
                &raw mut channel,
            )
        };
        match status {
            NORMAL => Ok(()),
            _ => Err(format!("{}: ca_create_channel: status {status}", name.to_string_lossy())),
        }
    }

    /// Sends the queued requests.
    pub fn flush(&self) {
        // SAFETY: it has no arguments
        unsafe { (self.flush)() };
    }
}

impl Monitor {
    /// Subscribes, or renews the subscription if the type has changed; otherwise the library renews it.
    fn connected(&'static self, channel: Channel) {
        // SAFETY: the channel is that of this callback
        let (field_type, count) =
            unsafe { ((self.libca.field_type)(channel), (self.libca.element_count)(channel)) };
        self.is_array.store(count > 1, Ordering::Release);
        let mut subscription = self.subscription.lock();
        if let Some(known) = &*subscription {
            if known.field_type == field_type {
                return;
            }
            // SAFETY: the id is that of an existing subscription
            unsafe { (self.libca.clear_subscription)(known.id) };
        }
        let mut id = ptr::null_mut();
        let kind = DBR_TIME + c_long::from(field_type);
        let monitor = ptr::from_ref(self).cast();
        // SAFETY: `self` lives as long as the process
        let status = unsafe {
            (self.libca.create_subscription)(kind, 1, channel, VALUE_OR_ALARM, on_event, monitor, &raw mut id)
        };
        *subscription = (status == NORMAL).then_some(Subscription { field_type, id });
        self.libca.flush();
    }
}

/// A value of the type `kind`, DBR_TIME_…, with its alarm and time stamp; None for a type that libca does not have.
///
/// # Safety
/// `value` is a structure of this type.
unsafe fn read(kind: c_long, value: *const c_void, is_array: bool) -> Option<Update> {
    let header: Header = unsafe { ptr::read_unaligned(value.cast()) };
    // SAFETY, of each: in db_access.h this type's value is at this offset
    let at = |offset: usize| unsafe { value.byte_add(offset) };
    let read = match kind - DBR_TIME {
        0 => Value::Text,
        _ if is_array => Value::Array,
        1 => Value::Whole(unsafe { at(14).cast::<i16>().read_unaligned() }.into()),
        2 => Value::Float(unsafe { at(12).cast::<f32>().read_unaligned() }.into()),
        3 => Value::Whole(unsafe { at(14).cast::<u16>().read_unaligned() }.into()),
        4 => Value::Whole(unsafe { at(15).cast::<u8>().read_unaligned() }.into()),
        5 => Value::Whole(unsafe { at(12).cast::<i32>().read_unaligned() }.into()),
        6 => Value::Float(unsafe { at(16).cast::<f64>().read_unaligned() }),
        _ => return None,
    };
    Some(Update {
        value: read,
        severity: header.severity.cast_unsigned(),
        status: header.status.cast_unsigned(),
        seconds: i64::from(header.seconds) + EPOCH,
        nanoseconds: header.nanoseconds,
    })
}

extern "C" fn on_connection(arguments: ConnectionArguments) {
    let Some(puser) = PUSER.get() else { return };
    // SAFETY: every channel was created with a Monitor that lives as long as the process
    let Some(monitor) = (unsafe { puser(arguments.channel).cast::<Monitor>().as_ref() }) else { return };
    if arguments.operation == CONNECTION_UP {
        monitor.connected(arguments.channel);
    } else {
        monitor.listener.lost();
    }
}

extern "C" fn on_event(arguments: EventArguments) {
    // SAFETY: every subscription was created with a Monitor that lives as long as the process
    let Some(monitor) = (unsafe { arguments.user.cast::<Monitor>().as_ref() }) else { return };
    if arguments.status != NORMAL || arguments.value.is_null() || arguments.count < 1 {
        monitor.listener.lost();
        return;
    }
    // SAFETY: the library passes a structure of the type that it names
    let is_array = monitor.is_array.load(Ordering::Acquire);
    if let Some(update) = unsafe { read(arguments.kind, arguments.value, is_array) } {
        monitor.listener.update(update);
    }
}

/// An event of a subscription whose user argument is a Box<dyn Listener>.
pub extern "C" fn on_queued(arguments: EventArguments) {
    // SAFETY: such a box lives as long as the process
    let Some(listener) = (unsafe { arguments.user.cast::<Box<dyn Listener>>().as_ref() }) else { return };
    if arguments.status != NORMAL || arguments.value.is_null() {
        listener.lost();
        return;
    }
    // SAFETY: the library passes a structure of the type that it names
    if let Some(update) = unsafe { read(arguments.kind, arguments.value, arguments.count > 1) } {
        listener.update(update);
    }
}
