//! The fuzzer of one target: `make fuzz` runs it for each.
//!
//! FUZZ_TARGET names the target; FUZZ_SEEDS, if given, is a folder into which its seeds are written first.

#![no_main]

mod targets;

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::OnceLock;
use targets::{Target, TARGETS};

static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        let chosen = TARGETS.iter().find(|target| target.name == name);
        let chosen = chosen.unwrap_or_else(|| panic!("FUZZ_TARGET is one of {names:?}"));
        if let Some(folder) = std::env::var_os("FUZZ_SEEDS").map(PathBuf::from) {
            for (number, seed) in (chosen.seeds)().iter().enumerate() {
                std::fs::write(folder.join(format!("seed-{number:04}")), seed).expect("the folder of seeds");
            }
        }
        let _ = CHOSEN.set(chosen);
    },
    |data: &[u8]| {
        if let Some(target) = CHOSEN.get() {
            (target.run)(data);
        }
    }
);
