//! Every target of the fuzzer reads its seeds, and the kept inputs in gateway/fuzz/corpus: an input that once
//! crashed a target does not crash it again. `make fuzz` looks for new ones (docs/developer.md).

#[path = "../fuzz/src/targets/mod.rs"]
mod targets;

use std::path::PathBuf;

#[test]
fn every_target_reads_its_seeds_and_the_kept_corpus() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for target in targets::TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for seed in &seeds {
            (target.run)(seed);
        }
        let Ok(kept) = std::fs::read_dir(corpus.join(target.name)) else { continue };
        for file in kept {
            let path = file.unwrap().path();
            println!("{}", path.display());
            (target.run)(&std::fs::read(path).unwrap());
        }
    }
}
