//! On what the figures were measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::options::Options;

/// Labels and what they say, in the order in which they are printed.
pub(crate) fn summary(data: &Path, options: &Options) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut summary = vec![
        ("cores", format!("{cores} × {}", processor())),
        ("memory", memory()),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("data on", file_system(data)),
        ("revision", options.revision.clone().unwrap_or_else(revision)),
    ];
    summary.extend(options.date.clone().map(|date| ("date", date)));
    summary
}

/// What to say when the machine has other things to do: then the figures are worse than they could be.
pub(crate) fn busy() -> Option<String> {
    let load: f64 = read("/proc/loadavg").split(' ').next()?.parse().ok()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limit = f64::from(u32::try_from(cores).unwrap_or(1)) / 2.0;
    (load > limit).then(|| format!("the machine was busy before the run: load {load:.1} on {cores} cores"))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn processor() -> String {
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn memory() -> String {
    let info = read("/proc/meminfo");
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    total.map_or_else(|| "unknown".to_owned(), |kib: u64| format!("{} MiB", kib / 1024))
}

/// The type and device of the file system that holds `path`: the mount with the longest name that it starts with.
fn file_system(path: &Path) -> String {
    let mounts = read("/proc/self/mounts");
    let mount = mounts
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(' ');
            let (device, folder, kind) = (parts.next()?, parts.next()?, parts.next()?);
            path.starts_with(folder).then_some((folder.len(), format!("{kind} ({device})")))
        })
        .max_by_key(|(length, _)| *length);
    mount.map_or_else(|| "unknown".to_owned(), |(_, text)| text)
}

fn revision() -> String {
    let asked = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    match asked {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}
