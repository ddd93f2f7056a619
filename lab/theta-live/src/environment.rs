//! Who we are, from the environment that launchers set.

/// One process among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPlace {
    /// 0 to size - 1.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
}

/// The names that launchers give to rank and size. Some give the rank only; the size must then be on the command line.
const NAMES: [(&str, &str, &str); 6] = [
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIx", "PMIX_RANK", "PMIX_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS"),
    ("Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),
    ("Nomad", "NOMAD_ALLOC_INDEX", "NOMAD_GROUP_COUNT"),
];

/// Rank and size; what the command line says goes before the environment, of which `variable` gives the values.
///
/// # Errors
/// Says what is missing or makes no sense, and the remedy.
pub fn place_from(
    rank: Option<u32>,
    size: Option<u32>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<RankPlace, String> {
    let number = |name: &str| {
        variable(name).map(|text| text.trim().parse::<u32>().map_err(|_| format!("{name}={text} is no rank or size")))
    };
    let launcher = NAMES.iter().find(|(_, rank, _)| variable(rank).is_some());
    let (from_rank, from_size) = match launcher {
        Some((_, rank, size)) => (number(rank).transpose()?, number(size).transpose()?),
        None => (None, None),
    };
    let tried = || NAMES.map(|(launcher, rank, _)| format!("{rank} ({launcher})")).join(", ");
    let rank = rank.or(from_rank).ok_or_else(|| {
        format!(
            "no rank: start this with mpirun, srun or another launcher, or give --rank and --size; looked for {}",
            tried()
        )
    })?;
    let size = size.or(from_size).ok_or("no size: the launcher does not say how many ranks there are; give --size")?;
    if rank >= size {
        return Err(format!("rank {rank} is not below the size {size}"));
    }
    Ok(RankPlace { rank, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: Option<u32>, size: Option<u32>, variables: &[(&str, &str)]) -> Result<RankPlace, String> {
        place_from(rank, size, |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_launcher_is_known() {
        for (_, rank, size) in NAMES {
            assert_eq!(place(None, None, &[(rank, "2"), (size, "5")]), Ok(RankPlace { rank: 2, size: 5 }), "{rank}");
            assert_eq!(place(None, Some(7), &[(rank, "2")]), Ok(RankPlace { rank: 2, size: 7 }), "{rank}");
            assert!(place(None, None, &[(rank, "2")]).unwrap_err().contains("--size"));
        }
    }

    #[test]
    fn the_command_line_goes_first() {
        let variables = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(place(Some(0), Some(2), &variables), Ok(RankPlace { rank: 0, size: 2 }));
        assert_eq!(place(Some(3), None, &variables), Ok(RankPlace { rank: 3, size: 4 }));
    }

    #[test]
    fn nonsense_is_reported() {
        assert!(place(None, None, &[]).unwrap_err().contains("mpirun"));
        assert!(place(None, None, &[("PMI_RANK", "x"), ("PMI_SIZE", "2")]).unwrap_err().contains("PMI_RANK=x"));
        assert!(place(Some(4), Some(4), &[]).unwrap_err().contains("not below"));
    }
}
