//! Channel Access: monitors of process variables, with alarms and time stamps.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_long, c_short, c_ulong, c_void, CString};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::libca::{
    ConnectionArguments, EventArguments, Id, Libca, OnEvent, CHAR, CONNECTION_UP, DBE_ALARM, DBE_LOG,
    DBE_PROPERTY, DBE_VALUE, DBR_GR_DOUBLE, DBR_GR_ENUM, DBR_TIME, ENUM, NORMAL, STRING,
};
use crate::queue::Queue;
use crate::signals::{Alarm, Signals, Unfit};
use crate::value::{self, fit, Part, Property, Value};

/// The most characters of a text.
const CHARACTERS: usize = 16_384;
/// Fields of records that are read at once, and how long one may take: channels that are not records have none.
const AT_ONCE: usize = 1000;
const PATIENCE: Duration = Duration::from_secs(10);
/// Fields that are read at each connection; the last one only if the unit is longer than the message with it.
const FIELDS: [&str; 3] = ["RTYP", "DESC", "EGU"];
const UNIT: usize = 2;

/// A process variable to be monitored.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub number: u32,
    pub name: String,
    /// Numbers are read as texts, an enumeration as its label.
    pub is_text: bool,
    /// All points of an array are read.
    pub is_array: bool,
    /// Updates beyond the record's archive deadband, ADEL, instead of those beyond MDEL.
    pub is_log: bool,
    pub has_properties: bool,
}

/// The rows' columns that a variable sets by itself: the variable's number there, and the part for each column.
pub struct Columns {
    pub signals: Arc<Signals<Value>>,
    pub number: usize,
    pub parts: Vec<(usize, Part)>,
}

#[derive(Debug)]
pub enum Event {
    Update(Value, Alarm),
    Lost,
    Property(Property),
}

/// Monitors of a thread, which alone adds and removes some.
pub struct ChannelAccess {
    libca: &'static Libca,
    shared: Arc<Shared>,
    channels: Mutex<HashMap<u32, (&'static Channel, Opened)>>,
    /// Fields that are being read, with their deadlines.
    reading: Mutex<Vec<(&'static Field, Opened, Instant)>>,
}

#[derive(Default)]
struct Shared {
    events: Queue<(&'static Channel, Event)>,
    unread: Mutex<VecDeque<&'static Field>>,
}

/// A channel of libca.
struct Opened(Id);

// SAFETY: libca's functions may be called with an id in any thread of its context
unsafe impl Send for Opened {}

/// A process variable that is searched for or connected. It lasts until the process ends, because libca may use it
/// until its channel has ended.
struct Channel {
    wanted: Wanted,
    columns: Option<Columns>,
    shared: Arc<Shared>,
    fields: Mutex<Vec<&'static Field>>,
    elements: AtomicUsize,
    is_removed: AtomicBool,
    subscriptions: Mutex<Option<(c_short, Vec<Opened>)>>,
}

/// A field of a process variable's record.
struct Field {
    channel: &'static Channel,
    name: &'static str,
    is_read: AtomicBool,
}

impl ChannelAccess {
    /// Opens the library at `path` for this thread.
    pub fn new(path: &Path) -> Result<Self, String> {
        Ok(Self {
            libca: Libca::attach(path)?,
            shared: Arc::default(),
            channels: Mutex::default(),
            reading: Mutex::default(),
        })
    }

    /// Monitors a variable. One with an impossible name stays not found. Without `columns` its updates are events.
    pub fn add(&self, wanted: Wanted, columns: Option<Columns>) {
        let (name, number) = (wanted.name.clone(), wanted.number);
        let channel: &'static Channel = Box::leak(Box::new(Channel {
            wanted,
            columns,
            shared: Arc::clone(&self.shared),
            fields: Mutex::default(),
            elements: AtomicUsize::new(0),
            is_removed: AtomicBool::new(false),
            subscriptions: Mutex::default(),
        }));
        if channel.wanted.has_properties {
            let field =
                |name| &*Box::leak(Box::new(Field { channel, name, is_read: AtomicBool::new(false) }));
            *channel.fields.lock() = FIELDS.map(field).to_vec();
        }
        if let Some(opened) = self.open(&name, on_connection, ptr::from_ref(channel).cast()) {
            self.channels.lock().insert(number, (channel, opened));
        }
    }

    pub fn remove(&self, number: u32) {
        let removed = self.channels.lock().remove(&number);
        if let Some((channel, opened)) = removed {
            channel.is_removed.store(true, Ordering::Release);
            self.close(&opened);
            self.flush();
        }
    }

    /// Sends the queued requests.
    pub fn flush(&self) {
        // SAFETY: it has no arguments
        unsafe { (self.libca.flush_io)() };
    }

    /// The events since the last call, as soon as there are any; none after `patience`.
    pub fn events(&self, patience: Duration) -> Vec<(u32, Event)> {
        let events = self.shared.events.take(patience).into_iter();
        events
            .filter(|(channel, _)| !channel.is_removed.load(Ordering::Acquire))
            .map(|(channel, event)| (channel.wanted.number, event))
            .collect()
    }

    /// Closes the channels of fields that were read or not found, and opens others.
    pub fn read_fields(&self) {
        let now = Instant::now();
        let mut reading = self.reading.lock();
        reading.retain(|(field, opened, end)| {
            let is_open = !field.is_read.load(Ordering::Acquire) && *end > now;
            if !is_open {
                self.close(opened);
            }
            is_open
        });
        while reading.len() < AT_ONCE {
            // callbacks wait for this lock: no function of libca may run under it
            let Some(field) = self.shared.unread.lock().pop_front() else { break };
            if field.channel.is_removed.load(Ordering::Acquire)
                || reading.iter().any(|(other, ..)| ptr::eq(*other, field))
            {
                continue;
            }
            field.is_read.store(false, Ordering::Release);
            let record = field.channel.wanted.name.split('.').next().unwrap_or_default();
            let name = format!("{record}.{}", field.name);
            if let Some(opened) = self.open(&name, on_field_connection, ptr::from_ref(field).cast()) {
                reading.push((field, opened, now + PATIENCE));
            }
        }
        self.flush();
    }

    /// Ends all monitors.
    pub fn end(&self) {
        // SAFETY: the channels are not used again
        unsafe { (self.libca.context_destroy)() };
    }

    fn open(
        &self,
        name: &str,
        callback: extern "C" fn(ConnectionArguments),
        user: *const c_void,
    ) -> Option<Opened> {
        let name = CString::new(name).ok()?;
        let mut id = ptr::null_mut();
        // SAFETY: the name ends with a NUL; `user` lives as long as the process
        let status = unsafe { (self.libca.create_channel)(name.as_ptr(), callback, user, 0, &raw mut id) };
        (status == NORMAL).then_some(Opened(id))
    }

    fn close(&self, opened: &Opened) {
        // SAFETY: the channel is open
        unsafe { (self.libca.clear_channel)(opened.0) };
    }
}

impl Channel {
    fn push(&'static self, event: Event) {
        self.shared.events.push((self, event));
    }

    fn lose(&'static self) {
        match &self.columns {
            Some(Columns { signals, number, .. }) => signals.lose(*number),
            None => self.push(Event::Lost),
        }
    }

    /// Subscribes, or renews the subscriptions if the type has changed; otherwise the library renews them.
    fn connected(&'static self, libca: &Libca, id: Id) {
        let wanted = &self.wanted;
        self.shared.unread.lock().extend(self.fields.lock().iter().take(UNIT));
        // SAFETY: the channel is that of this callback
        let (field, count) = unsafe { ((libca.field_type)(id), (libca.element_count)(id)) };
        let elements = usize::try_from(count).unwrap_or(usize::MAX);
        self.elements.store(elements, Ordering::Release);
        let requested = if wanted.is_text && field != CHAR { STRING } else { field };
        let mut subscriptions = self.subscriptions.lock();
        if let Some((before, former)) = &*subscriptions {
            if *before == requested {
                return;
            }
            for subscription in former {
                // SAFETY: the subscription exists
                unsafe { (libca.clear_subscription)(subscription.0) };
            }
        }
        let points = match (wanted.is_array, wanted.is_text && field == CHAR) {
            // as many as each event has
            (true, _) => 0,
            (false, true) => elements.min(CHARACTERS),
            (false, false) => elements.min(2),
        };
        let mask = if wanted.is_log { DBE_LOG } else { DBE_VALUE } | DBE_ALARM;
        let time = DBR_TIME + c_long::from(requested);
        let mut events: Vec<(c_long, usize, c_long, OnEvent)> = vec![(time, points, mask, on_event)];
        if wanted.has_properties && !wanted.is_text && field != STRING {
            // the library sends one at each connection
            let kind = if field == ENUM { DBR_GR_ENUM } else { DBR_GR_DOUBLE };
            events.push((kind, 1, DBE_PROPERTY, on_properties));
        }
        let user: *const c_void = ptr::from_ref(self).cast();
        let mut made = Vec::with_capacity(events.len());
        for (kind, points, mask, callback) in events {
            let mut subscription = ptr::null_mut();
            // SAFETY: `self` lives as long as the process
            let status = unsafe {
                let points = points as c_ulong;
                (libca.create_subscription)(kind, points, id, mask, callback, user, &raw mut subscription)
            };
            if status == NORMAL {
                made.push(Opened(subscription));
            }
        }
        *subscriptions = Some((requested, made));
        // SAFETY: it has no arguments
        unsafe { (libca.flush_io)() };
    }

    fn update(&'static self, value: Value, alarm: Alarm) {
        let Some(Columns { signals, number, parts }) = &self.columns else {
            self.push(Event::Update(value, alarm));
            return;
        };
        let reading = |&(index, part)| {
            let unfit = || Unfit::Value { index, value: value.clone() };
            (index, fit(&value, &alarm, part).ok_or_else(unfit))
        };
        signals.read(*number, parts.iter().map(reading).collect(), alarm);
    }
}

extern "C" fn on_connection(arguments: ConnectionArguments) {
    let Some(libca) = Libca::opened() else { return };
    // SAFETY: the channel was created with a Channel that lives as long as the process
    let Some(channel) = (unsafe { (libca.puser)(arguments.channel).cast::<Channel>().as_ref() }) else {
        return;
    };
    if arguments.operation == CONNECTION_UP {
        channel.connected(libca, arguments.channel);
    } else {
        channel.lose();
    }
}

extern "C" fn on_event(arguments: EventArguments) {
    // SAFETY: the subscription was created with a Channel that lives as long as the process
    let Some(channel) = (unsafe { arguments.user.cast::<Channel>().as_ref() }) else { return };
    if arguments.status != NORMAL || arguments.value.is_null() {
        channel.lose();
        return;
    }
    let Ok(count) = usize::try_from(arguments.count) else { return };
    let is_single = count == 1 && channel.elements.load(Ordering::Acquire) == 1;
    let is_text = channel.wanted.is_text && !channel.wanted.is_array;
    // SAFETY: the library passes a structure of the type and the count that it names
    let read = unsafe { value::read(arguments.kind, count, arguments.value, is_single, is_text) };
    if let Some((value, alarm)) = read {
        channel.update(value, alarm);
    }
}

extern "C" fn on_properties(arguments: EventArguments) {
    // SAFETY: as for `on_event`
    let Some(channel) = (unsafe { arguments.user.cast::<Channel>().as_ref() }) else { return };
    if arguments.status != NORMAL || arguments.value.is_null() {
        return;
    }
    // SAFETY: the library passes a structure of the type that it names
    let property = unsafe { value::properties(arguments.kind, arguments.value) };
    if matches!(property, Property::Numbers { unit: None, .. }) {
        channel.shared.unread.lock().extend(channel.fields.lock().get(UNIT));
    }
    channel.push(Event::Property(property));
}

extern "C" fn on_field_connection(arguments: ConnectionArguments) {
    let Some(libca) = Libca::opened() else { return };
    if arguments.operation == CONNECTION_UP {
        // SAFETY: the channel was created with a Field that lives as long as the process
        unsafe {
            let user = (libca.puser)(arguments.channel);
            (libca.array_get_callback)(c_long::from(STRING), 1, arguments.channel, on_field, user);
            (libca.flush_io)();
        }
    }
}

extern "C" fn on_field(arguments: EventArguments) {
    // SAFETY: the request was made with a Field that lives as long as the process
    let Some(field) = (unsafe { arguments.user.cast::<Field>().as_ref() }) else { return };
    if arguments.status == NORMAL && !arguments.value.is_null() {
        // SAFETY: a DBR_STRING was requested
        let text = unsafe { value::field(arguments.value) };
        field.channel.push(Event::Property(Property::Field(field.name, text)));
    }
    field.is_read.store(true, Ordering::Release);
}
