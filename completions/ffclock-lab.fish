# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ffclock_lab_global_optspecs
    string join \n page= json h/help V/version
end

function __fish_ffclock_lab_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ffclock_lab_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ffclock_lab_using_subcommand
    set -l cmd (__fish_ffclock_lab_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -s V -l version -d 'Print version'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "replay" -d 'Run the estimator over a recorded trace'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "report" -d 'Draw a page that shows how well a clock did'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "sim" -d 'Run clocks in simulated worlds, with the truth known'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "counters" -d 'List and characterise the counters of this machine'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "probe" -d 'Measure where packets wait in this host, and what that does to a clock'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "owd" -d 'Measure one-way delays between hosts, each with a bound'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "theta" -d 'Measure how message delays between hosts correlate: the Theta-Model'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "live" -d 'Compare running daemons side by side, each with a clock of its own'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "demo" -d 'Synchronise to servers with a known time and show how well, in minutes'
complete -c ffclock-lab -n "__fish_ffclock_lab_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l counter-frequency -d 'Ticks per second of the counter, where the trace does not state it or is wrong; a remembered rate in the trace does not count then' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l from -d 'Begin the statistics this long after the first exchange, instead of at the end of the warm-up; a bare number is seconds' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l output -d 'Write the clock after each exchange as CSV, in place of what is in FILE' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l exchanges -d 'Write each exchange as CSV, in place of what is in FILE: round trip, floor, offset and, where known, the true delays' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l server -d 'Replay this server, by the name in the trace or its number from 0, instead of the first' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l estimator -d 'The algorithm' -r -f -a "classic\t'The algorithm of the RADclock papers'
learned\t'One-sided evidence, two directions and a bank of oscillators'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l set -d 'Set an option of the algorithm, such as `offset_window=512 s`' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l without -d 'Leave out a part of the learned estimator, to measure what it is worth; may be repeated (docs/algorithm/learned.md)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l stamps -d 'Convert the stamps in this file, one a line as `ffclock stamp` prints them, by the clock in retrospect, instead of the report' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l keep-going -d 'Count rows that cannot be read and go on, instead of stopping'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l smooth -d 'Work out the clock in retrospect too, from the past and the future of each exchange'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -s o -l output -d 'The page to write, or a directory for page and pictures' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -l title -d 'Heading, instead of the run\'s own' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -l clock -d 'Which clock of a simulated run is looked at in detail' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -l estimator -d 'The algorithm that replays a trace, `classic` or `learned`' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -l python -d 'The Python interpreter that has the package [default: $FFCLOCK_PYTHON, .venv/bin/python here, python3]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand report" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "list" -d 'Name the built-in scenarios'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "run" -d 'Run one scenario once'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "past" -d 'Show how old stamps and long intervals fare in one scenario'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "sweep" -d 'Run one scenario with many seeds'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "goals" -d 'Judge the learned estimator by its goals, over all scenarios and many seeds'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "campaign" -d 'Judge the strict bound in worlds of chance in which a minority of the servers lies'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and not __fish_seen_subcommand_from list run past sweep goals campaign help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from list" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from list" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l seed -d 'The seed of all random numbers' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l trace -d 'Write what the clocks saw, with the truth, for `ffclock-lab replay`: CSV if the name ends in `.csv`, otherwise our own format, which alone keeps every bit. FILE must not be there yet' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l series -d 'Write what each clock showed, and its error, at every reading as CSV, for `ffclock-lab report`, in place of what is in FILE' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l without -d 'Leave out a part of the learned estimator, to measure what it is worth; may be repeated (docs/algorithm/learned.md)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l oracle -d 'Run the oracles as well: they know the laws of the world, and show how well any clock could do. Takes about ten times as long. For worlds of one server'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from past" -l seed -d 'The seed of all random numbers' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from past" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from past" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from past" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from sweep" -l seeds -d 'The seeds, first and last, such as `1..100`' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from sweep" -l jobs -d 'How many runs at a time [default: as many as there are processors]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from sweep" -l without -d 'Leave out a part of the learned estimator, to measure what it is worth; may be repeated (docs/algorithm/learned.md)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from sweep" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from sweep" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from sweep" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l seeds -d 'The seeds, first and last, such as `1..20`' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l jobs -d 'How many runs at a time [default: as many as there are processors]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l keep -d 'Keep each run in this file, and reuse the runs in it that the same program has made, so that the command can be interrupted and resumed. A file with anything else in it is refused' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l oracles -d 'Run the oracles, which take most of the time, with the first N seeds only [default: with all]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l without -d 'Leave out a part of the learned estimator, to measure what it is worth; may be repeated (docs/algorithm/learned.md)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from goals" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from campaign" -l seeds -d 'The seeds, first and last, such as `1..100`' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from campaign" -l jobs -d 'How many worlds at a time [default: as many as there are processors]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from campaign" -l show -d 'Print the world of this seed as a scenario, and do nothing else' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from campaign" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from campaign" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from campaign" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "list" -d 'Name the built-in scenarios'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run one scenario once'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "past" -d 'Show how old stamps and long intervals fare in one scenario'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "sweep" -d 'Run one scenario with many seeds'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "goals" -d 'Judge the learned estimator by its goals, over all scenarios and many seeds'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "campaign" -d 'Judge the strict bound in worlds of chance in which a minority of the servers lies'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -f -a "latency" -d 'Measure how long it takes to read each counter, in each way there is'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -f -a "stability" -d 'Measure how steadily the counters run, against one another and a reference'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -f -a "clock" -d 'Compare the clocks made from each counter and each kind of packet stamp, on the same packets'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -f -a "watch" -d 'Watch for counters that jump, stall, run backwards or lose the kernel\'s trust'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -f -a "show" -d 'Show a recording again'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and not __fish_seen_subcommand_from latency stability clock watch show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l for -d 'How long to measure without stress' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l stress -d 'Alternate quiet phases with phases under these loads: cpu, network, memory, io, syscall, ip, interrupt, temperature-cycle' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l phase -d 'How long each phase lasts (the papers: 90 min)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l only -d 'Only counters and ways of reading whose name contains one of these' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l record -d 'Record everything into a file that is not there yet (docs/counters.md)' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l every -d 'How often to measure (the papers: every 0.5 s)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l burst -d 'Readings of each way in a round' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from latency" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l for -d 'How long to measure without stress' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l stress -d 'Alternate quiet phases with phases under these loads: cpu, network, memory, io, syscall, ip, interrupt, temperature-cycle' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l phase -d 'How long each phase lasts (the papers: 90 min)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l only -d 'Only counters and ways of reading whose name contains one of these' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l record -d 'Record everything into a file that is not there yet (docs/counters.md)' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l every -d 'How often to read the counters' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l against -d 'The reference: ffclock (the published clock), /dev/ptpN, /dev/ppsN, or a file' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from stability" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l stress -d 'Alternate quiet phases with phases under these loads: cpu, network, memory, io, syscall, ip, interrupt, temperature-cycle' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l phase -d 'How long each phase lasts (the papers: 90 min)' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l only -d 'Only counters and ways of reading whose name contains one of these' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l record -d 'Record everything into a file that is not there yet (docs/counters.md)' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l poll -d 'Time between two requests' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l warm-up -d 'Leave this much time at the start out of the figures' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l skew -d 'The server\'s rate against the nominal rate of the CPU\'s counter' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l wander -d 'The largest deviation of the server\'s rate from its mean, in a swing of one minute' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l for -d 'How long to measure without stress' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from clock" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from watch" -l for -d 'How long to watch [default: until interrupted]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from watch" -l every -d 'How often to look' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from watch" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from watch" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from show" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from show" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from help" -f -a "latency" -d 'Measure how long it takes to read each counter, in each way there is'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from help" -f -a "stability" -d 'Measure how steadily the counters run, against one another and a reference'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from help" -f -a "clock" -d 'Compare the clocks made from each counter and each kind of packet stamp, on the same packets'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from help" -f -a "watch" -d 'Watch for counters that jump, stall, run backwards or lose the kernel\'s trust'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a recording again'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand counters; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "run" -d 'Send test packets to an echo server and stamp them at every location of this host'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "show" -d 'Show the tables of a record'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "advise" -d 'Say in plain words where to stamp on this host'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "watch" -d 'Watch the real traffic of a running UDP service'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "calibrate" -d 'Measure this host\'s own delays, for ffclockd to take them off its stamps'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "echo" -d 'Send test packets back'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and not __fish_seen_subcommand_from run show advise watch calibrate echo help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l to -d 'The host on which `ffclock-lab probe echo` runs, with its port if it is not 8777' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l device -d 'The device on the way to the host, where it cannot be found out' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l packets -d 'The number of packets in all phases together' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l rate -d 'Packets per second' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l size -d 'Bytes of the smallest payload; lengths vary by 254 bytes, which distinguishes packets in the kernel\'s events' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l stress -d 'Alternate quiet phases with phases under these loads: io, syscall, ip, cpu, interrupt, memory, network; none stands for quiet' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l phase -d 'How long each phase lasts (the paper: 2 h); replaces --packets' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l without -d 'Leave out a way to stamp: tap, tracing, ebpf, stack (the tracing anywhere but at the driver) or fentry (a kprobe replaces it)' -r -f -a "tap\t'The packet tap'
tracing\t'The kernel\'s tracing'
ebpf\t'eBPF programs'
fentry\t'eBPF by fentry'
stack\t'The kernel\'s tracing anywhere but at the driver'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l wire -d 'Stamp outside the host too, at the other end of a virtual link, by the kernel\'s tracing: of --netns, or this device, which may be in another network namespace' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l record -d 'Record every stamp into a file: Parquet if its name ends so, JSON lines otherwise (docs/probe.md)' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l probe-effect -d 'Measure first what the probes themselves cost, in this many rounds (a few seconds each), and show corrected figures beside the raw ones' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l netns -d 'Use an echo server in a network namespace of its own'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l multicast -d 'With --netns: send to a multicast group, and stamp the copy that comes back to this host (IP_MULTICAST_LOOP), as the programs of the paper do; with --to, name a group that `ffclock-lab probe echo --multicast` has joined'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l xdp -d 'Stamp by eBPF at XDP as well; it changes how the driver receives, and some drivers stop for a moment to change over'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from show" -l record -d 'Write it again into another file: Parquet if its name ends so, JSON lines otherwise' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from show" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from show" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l to -d 'The host on which `ffclock-lab probe echo` runs, with its port if it is not 8777' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l device -d 'The device on the way to the host, where it cannot be found out' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l packets -d 'The number of packets in all phases together' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l rate -d 'Packets per second' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l size -d 'Bytes of the smallest payload; lengths vary by 254 bytes, which distinguishes packets in the kernel\'s events' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l stress -d 'Alternate quiet phases with phases under these loads: io, syscall, ip, cpu, interrupt, memory, network; none stands for quiet' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l phase -d 'How long each phase lasts (the paper: 2 h); replaces --packets' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l without -d 'Leave out a way to stamp: tap, tracing, ebpf, stack (the tracing anywhere but at the driver) or fentry (a kprobe replaces it)' -r -f -a "tap\t'The packet tap'
tracing\t'The kernel\'s tracing'
ebpf\t'eBPF programs'
fentry\t'eBPF by fentry'
stack\t'The kernel\'s tracing anywhere but at the driver'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l wire -d 'Stamp outside the host too, at the other end of a virtual link, by the kernel\'s tracing: of --netns, or this device, which may be in another network namespace' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l from -d 'Judge this record instead of measuring' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l netns -d 'Use an echo server in a network namespace of its own'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l multicast -d 'With --netns: send to a multicast group, and stamp the copy that comes back to this host (IP_MULTICAST_LOOP), as the programs of the paper do; with --to, name a group that `ffclock-lab probe echo --multicast` has joined'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l xdp -d 'Stamp by eBPF at XDP as well; it changes how the driver receives, and some drivers stop for a moment to change over'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from advise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -l port -d 'The service\'s UDP port' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -l for -d 'How long to watch' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -l device -d 'The device, if not all of them' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -l pid -d 'The program [default: every program with a socket on that port]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l to -d 'The host on which `ffclock-lab probe echo` runs, with its port if it is not 8777' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l device -d 'The device on the way to the host, where it cannot be found out' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l size -d 'Bytes of the smallest payload; lengths vary by 254 bytes, which distinguishes packets in the kernel\'s events' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l stress -d 'Alternate quiet phases with phases under these loads: io, syscall, ip, cpu, interrupt, memory, network; none stands for quiet' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l phase -d 'How long each phase lasts (the paper: 2 h); replaces --packets' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l without -d 'Leave out a way to stamp: tap, tracing, ebpf, stack (the tracing anywhere but at the driver) or fentry (a kprobe replaces it)' -r -f -a "tap\t'The packet tap'
tracing\t'The kernel\'s tracing'
ebpf\t'eBPF programs'
fentry\t'eBPF by fentry'
stack\t'The kernel\'s tracing anywhere but at the driver'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l wire -d 'Stamp outside the host too, at the other end of a virtual link, by the kernel\'s tracing: of --netns, or this device, which may be in another network namespace' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l file -d 'Where the calibration is kept' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l own -d 'Measure the daemon\'s own packets instead: what it is recording, a file or the directory of `record`' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l for -d 'With --own, how long to look at its packets; at least some hundred of them should pass' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l rate -d 'Packets per second' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l packets -d 'The number of packets in all phases together' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l netns -d 'Use an echo server in a network namespace of its own'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l multicast -d 'With --netns: send to a multicast group, and stamp the copy that comes back to this host (IP_MULTICAST_LOOP), as the programs of the paper do; with --to, name a group that `ffclock-lab probe echo --multicast` has joined'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l xdp -d 'Stamp by eBPF at XDP as well; it changes how the driver receives, and some drivers stop for a moment to change over'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l check -d 'With --own, only say what the clock is off by for the host\'s delays, and write nothing'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from calibrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from echo" -l listen -d 'Where to listen' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from echo" -l multicast -d 'Answer what is sent to this multicast group as well, on the device that the routes name for it' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from echo" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from echo" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from echo" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "run" -d 'Send test packets to an echo server and stamp them at every location of this host'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show the tables of a record'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "advise" -d 'Say in plain words where to stamp on this host'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "watch" -d 'Watch the real traffic of a running UDP service'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "calibrate" -d 'Measure this host\'s own delays, for ffclockd to take them off its stamps'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "echo" -d 'Send test packets back'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand probe; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -f -a "send" -d 'Send test packets to a reflector and measure the delay of each direction'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -f -a "reflect" -d 'Answer test packets with the times at which they came and left'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -f -a "report" -d 'Show the figures of a record, and draw it'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and not __fish_seen_subcommand_from send reflect report help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l interval -d 'Between two packets; below 100 us a reflector needs a higher --rate, or it leaves packets unanswered' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l packets -d 'How many packets' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l patience -d 'How long a reply is waited for' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l bytes -d 'The length of a packet beyond its UDP header; what is more than 44 is padding' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l record -d 'Write a row for each packet: Parquet if the name ends in .parquet, else CSV' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l metrics -d 'Write metrics in OpenMetrics text to this file every 5 s' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l metrics-listen -d 'Serve metrics over HTTP' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l endless -d 'Send until Ctrl-C instead; the last minute has figures of its own'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l unsynchronised -d 'Measure although the clock is not synchronised: round trips alone'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from send" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l listen -d 'Where to listen' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l rate -d 'Packets that are answered per second, of each address; to the sender, those beyond look lost on the way' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l passages -d 'Write the counter\'s readings of each packet to this CSV file, for `owd report --truth`' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l stateless -d 'Repeat the sender\'s numbers instead of counting the packets of each session'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l unsynchronised -d 'Answer although the clock is not synchronised; replies say so'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from reflect" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from report" -l truth -d 'What `owd reflect --passages` wrote on the same host: the error of every delay is shown as well' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from report" -l output -d 'Draw owd.png and owd.html into this directory' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from report" -l python -d 'The interpreter that has the package' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from report" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from report" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from help" -f -a "send" -d 'Send test packets to a reflector and measure the delay of each direction'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from help" -f -a "reflect" -d 'Answer test packets with the times at which they came and left'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from help" -f -a "report" -d 'Show the figures of a record, and draw it'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand owd; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "analyse" -d 'Analyse how the delays in a log relate to each other: Omega, Theta and their parts'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "correlate" -d 'Test whether long and short delays go together'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "coverage" -d 'Hold the bounds that suit a calm run against a run under load: a timeout, or a ratio of delays'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "advise" -d 'Choose when a failure detector may suspect: by a timeout, or by a number of messages'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "check" -d 'Explore what the algorithm does under every fault'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "run" -d 'Run the algorithm live, on this machine or on several'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "rank" -d 'Run one process of a live run, started by mpirun, srun or another launcher'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "load" -d 'Keep network, processor or disk busy during a measurement'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "simulate" -d 'Run the algorithm in virtual time, where the truth is known'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "report" -d 'Draw histograms of the delays and ratios of a log, on one page'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "import" -d 'Make a log from a packet capture of another system\'s requests, or from a list of its messages'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "watch" -d 'Watch the messages of a running system: Omega of the last minute and of the run'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "taps" -d 'Compare a run of several hosts with captures of their links'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "why" -d 'Say why the ratio was largest: the slow message, its way and its siblings'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and not __fish_seen_subcommand_from analyse correlate coverage advise check run rank load simulate report import watch taps why help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l stamp -d 'Place a switch before or after the broadcast of its new round' -r -f -a "before\t'The messages just being sent are not yet in transit, as in the paper\'s histograms'
after\t'They are in transit, as the theorem needs'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l trim -d 'Leave out this much at the start and at the end, also for --certify and the comparison with round trips; not together with --xi' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l bin -d 'Width of the bins of delays' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l block-messages -d 'Size of a block in messages, approximately; the largest Omega of each block is kept' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l window-rounds -d 'Largest number of rounds held while messages of older ones are outstanding' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l theta -d 'Compute Theta too, the largest ratio of the largest to the smallest delay in transit; slower'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l certify -d 'Compute bounds on Omega, g_r and, with --theta, on Theta that hold if every clock kept its bound; needs the messages in memory'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l truth -d 'Use the true times instead of those of the clocks; only simulated logs have them'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l xi -d 'Compute Xi* too, which needs no clock, with a cycle that has it; needs the events in memory'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l histograms -d 'Compute the histograms too, and put them into the JSON; slower'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from analyse" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -l trim -d 'Leave out this much at the start and at the end' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -l redraws -d 'Runs with the delays of each link drawn again' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -l seed -d 'The seed of shifts, resamples and redrawn runs' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -l pairs -d 'Write the pairs of delays here too, as CSV' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from correlate" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l under -d 'The log of the run under load' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l share -d 'The share of the calm rounds that keep the bounds, at least 0.5 and below 1' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l timeout -d 'Hold this timeout against both runs too; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l ratio -d 'Hold this ratio against both runs too; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l stamp -d 'Place a switch before or after the broadcast of its new round' -r -f -a "before\t'The messages just being sent are not yet in transit, as in the paper\'s histograms'
after\t'They are in transit, as the theorem needs'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l trim -d 'Leave out this much at the start and at the end of both runs' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l resamples -d 'Resamples of the bootstrap' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l seed -d 'The seed of the resamples' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l picture -d 'Draw the curves of both models into this PNG file' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l python -d 'The interpreter that has the Python package, for --picture' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from coverage" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l under -d 'A list of messages under load' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l receiver -d 'Who suspects [default: the only receiver]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l unit -d 'The unit of sent and perceived' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'
s\t'Seconds, with a fraction as it comes'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l false-share -d 'The share of silences that may be taken for a failure' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l resamples -d 'Resamples of the bootstrap' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l seed -d 'The seed of the resamples' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from advise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l n -d 'Processes' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l f -d 'Byzantine processes tolerated: n must be at least 3f + 1 [default: the most that n allows]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l rounds -d 'Explore with one step for each switch, until processes reach this round; 0 leaves this out' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l every-delivery -d 'Explore with one step for each delivery, until processes reach this round; 0 leaves this out [default: 3 for n <= 4, otherwise 0]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l campaign -d 'Number of runs with random adversaries' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l campaign-rounds -d 'The round to which random adversaries run' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l simulations -d 'Number of simulated runs, as `theta simulate` makes them, whose events are held to the rules; 0 leaves this out' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l simulation-rounds -d 'The last round of the simulated runs' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l window -d 'Have processes remember a window of this many rounds (1, 2, 4, 8, 16, 32 or 64), and of later ones only the newest of each sender. For random adversaries and, without --printed, for every delivery; leaves out --rounds [default: as in real runs, up to 64]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l seed -d 'The seed of all random choices' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l states -d 'Give up an exploration beyond this many states' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l printed -d 'Check the algorithm as printed in the paper, which is known to fail, instead of the repaired one'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l netns -d 'Start this many processes on this machine, each in a network namespace of its own' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l hosts -d 'Start a process on each of these hosts, through ssh' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l port -d 'The port at which the ranks meet' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l link-rate -d 'With --netns: the rate of each host\'s link in both directions, in Mbit/s, as of a switch; by tc\'s token bucket' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l load -d 'A load beside each process, with --netns: network, traffic, processor, timer, interrupt or disk with its level in per cent, and softirq once for all processors; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l pages -d 'With --netns: the page of each host, in the order of hosts; they are then compared like hosts with different counters' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l load-priority -d 'The real-time priority of the loads on the network, below that of the algorithm; other loads get one less. Reported where it is not permitted' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l softirq-priority -d 'With --netns: the real-time priority of the kernel\'s threads for soft interrupts (ksoftirqd) during the run. They are the whole machine\'s, and get their normal priority back however the run ends' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l f -d 'Byzantine processes tolerated: there must be at least 3f + 1 ranks [default: the most that they allow]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l rounds -d 'The last round that is sent' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l delay -d 'The delay D between a quorum and the next round' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l patience -d 'How long ranks wait for one another at the start' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l limit -d 'How long the run may take' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l priority -d 'A real-time priority (first in, first out) for the algorithm, 1 to 99; the log says where it is not permitted' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l fault -d 'A fault, with the keys that faults have in a scenario; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l counter -d 'The counter that stamps events, such as tsc or monotonic-raw; ranks of one machine must take the same, unless each has a page of its own [default: the counter of the page, or what the checks of the CPU counter decide]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l events -d 'Largest number of events each rank keeps in memory until the end; further ones are only counted, and the log is partial' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l log -d 'The directory of the log, on the host of rank 0; it must not hold one yet' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l printed -d 'Run the algorithm as the paper prints it, which is known to fail'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l round-trips -d 'Answer each message at once and measure round trips too, as in the paper: their averages hide what one-way delays show'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l rank -d 'Which rank this is [default: from the launcher]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l size -d 'How many ranks there are: n [default: from the launcher]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l rendezvous -d 'The address of rank 0' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l listen -d 'Where rank 0 listens [default: the address of the rendezvous]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l host -d 'What to call this rank\'s host [default: its name]; ranks of the same name, counter and page are on the same host' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l f -d 'Byzantine processes tolerated: there must be at least 3f + 1 ranks [default: the most that they allow]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l rounds -d 'The last round that is sent' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l delay -d 'The delay D between a quorum and the next round' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l patience -d 'How long ranks wait for one another at the start' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l limit -d 'How long the run may take' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l priority -d 'A real-time priority (first in, first out) for the algorithm, 1 to 99; the log says where it is not permitted' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l fault -d 'A fault, with the keys that faults have in a scenario; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l counter -d 'The counter that stamps events, such as tsc or monotonic-raw; ranks of one machine must take the same, unless each has a page of its own [default: the counter of the page, or what the checks of the CPU counter decide]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l events -d 'Largest number of events each rank keeps in memory until the end; further ones are only counted, and the log is partial' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l log -d 'The directory of the log, on the host of rank 0; it must not hold one yet' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l printed -d 'Run the algorithm as the paper prints it, which is known to fail'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l round-trips -d 'Answer each message at once and measure round trips too, as in the paper: their averages hide what one-way delays show'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from rank" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l level -d 'The level in per cent: 30, ramp:0..90 or jumps:10..90' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l for -d 'The length of the load' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l priority -d 'A real-time priority (first in, first out), 1 to 98; reported where it is not permitted' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l to -d 'Network and traffic: where to send, in turn; nothing needs to listen there' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l rate -d 'Network and traffic: the rate of 100 %, in Mbit/s' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l file -d 'Disk: a file that is written over and over, and removed at the end' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from load" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l scenario -d 'The scenario; all keys have defaults' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l n -d 'Processes [default: the scenario\'s, or 4]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l f -d 'Byzantine processes tolerated: n must be at least 3f + 1 [default: the scenario\'s, or the most that n allows]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l rounds -d 'The last round that processes send [default: the scenario\'s, or 1000]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l delay -d 'The delay D between a quorum and the next round, such as "1 ms" [default: the scenario\'s, or 0 s]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l two-faced -d 'A process that sends different messages to different receivers; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l fault -d 'A fault, with the keys that faults have in a scenario; may be given several times' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l seed -d 'The seed of all random choices' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l log -d 'Write the run as a log into this directory, which must not hold one' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l printed -d 'Run the algorithm as printed in the paper, which is known to fail'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from simulate" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from report" -l output -d 'Where to put theta.png and theta.html' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from report" -l python -d 'The interpreter that has the package' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from report" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from report" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l messages -d 'A list of messages instead: text, or Parquet if the name ends in .parquet' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l receiver -d 'Of a list: whose messages are taken [default: the only receiver]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l sender -d 'Of a list: whom the receiver hears; once for each [default: all who sent to it]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l unit -d 'Of a list: the unit of sent and perceived' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'
s\t'Seconds, with a fraction as it comes'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l server -d 'A capture of the same time at a server; several for several servers' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l drift -d 'How fast the clocks of two captures may drift against each other' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l client -d 'The address whose requests are taken' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l port -d 'The servers\' port' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l tolerated -d 'How many servers\' replies the client need not wait for; of a list, how many senders' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l protocol -d 'What is spoken on the connections, of which many requests may be open' -r -f -a "redis\t'Redis (RESP 2 and 3): replies in the order of their commands'
http2\t'HTTP/2 without encryption, as gRPC has it too: by stream, from headers to headers'
kafka\t'Kafka: by correlation id'
length-2-big\t'Messages behind their length in 2 octets, highest first, replies in the order of their requests'
length-2-little\t'The same, lowest octet first'
length-4-big\t'The same in 4 octets, highest first'
length-4-little\t'The same in 4 octets, lowest first'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l list -d 'Of a protocol: the list of messages to be made, as `--messages` and `theta advise` read it' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l output -d 'The log to be made' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l one-request-at-a-time -d 'Take all that the client writes on a connection before a reply for one request; otherwise that is refused'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l receiver -d 'Whose messages are taken' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l sender -d 'Whom it hears; once for each' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l tolerated -d 'How many senders the receiver need not wait for' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l unit -d 'The unit of sent and perceived' -r -f -a "ns\t'Nanoseconds'
us\t'Microseconds'
ms\t'Milliseconds'
s\t'Seconds, with a fraction as it comes'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l longest -d 'Messages that take longer are passed over; figures are this much behind' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l every -d 'Between two lines of figures' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l alarm-omega -d 'Raise the alarm while Omega of the last minute is larger; 1 or more' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l alarm-delay -d 'Raise the alarm while tau+ of the last minute is larger, or a message took longer than --longest' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l metrics -d 'Write metrics in OpenMetrics text to this file every 5 s' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l metrics-listen -d 'Serve metrics over HTTP' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from taps" -l tap -d 'A host of the log and the capture of its link (classic or pcapng); once for each host' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from taps" -l drift -d 'How fast the clock of the captures may drift' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from taps" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from taps" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from taps" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l round -d 'The switch to this round instead of the one with the largest ratio' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l stamp -d 'Place a switch before or after the broadcast of its new round' -r -f -a "before\t'The messages just being sent are not yet in transit, as in the paper\'s histograms'
after\t'They are in transit, as the theorem needs'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l trim -d 'Leave out this much at the start and at the end' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l sched -d 'What the scheduler did, of the host of the receiver, or of the sender if that was slow' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l picture -d 'Draw what was in transit into this PNG file' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l python -d 'The interpreter that has the Python package, for --picture' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from why" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "analyse" -d 'Analyse how the delays in a log relate to each other: Omega, Theta and their parts'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "correlate" -d 'Test whether long and short delays go together'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "coverage" -d 'Hold the bounds that suit a calm run against a run under load: a timeout, or a ratio of delays'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "advise" -d 'Choose when a failure detector may suspect: by a timeout, or by a number of messages'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "check" -d 'Explore what the algorithm does under every fault'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run the algorithm live, on this machine or on several'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "rank" -d 'Run one process of a live run, started by mpirun, srun or another launcher'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "load" -d 'Keep network, processor or disk busy during a measurement'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "simulate" -d 'Run the algorithm in virtual time, where the truth is known'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "report" -d 'Draw histograms of the delays and ratios of a log, on one page'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "import" -d 'Make a log from a packet capture of another system\'s requests, or from a list of its messages'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "watch" -d 'Watch the messages of a running system: Omega of the last minute and of the run'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "taps" -d 'Compare a run of several hosts with captures of their links'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "why" -d 'Say why the ratio was largest: the slow message, its way and its siblings'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand theta; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -f -a "list" -d 'List the plans: what the network does, and how often the daemons ask'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -f -a "run" -d 'Run daemons side by side, or go on with a run that was broken off'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -f -a "report" -d 'Compare the daemons of one run, or of several repetitions'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and not __fish_seen_subcommand_from list run report help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from list" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from list" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l for -d 'How long to watch, in all sessions together' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l poll -d 'The polling interval in place of the plan\'s [s]: 0.125, 0.25, ... 1024' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l settle -d 'How long after each start errors do not count [default: two fifths of the run, at most 30 min; with phases until the first]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l seed -d 'Chooses the realisation of the oscillator' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l only -d 'The contestants, by name [default: all that can run here]' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l load -d 'What burns on the host during the whole run, beside what the plan has' -r -f -a "cpu\t'A busy loop for each processor'
disk\t'Writing 64 MiB again and again, each time to the disk'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l witness -d 'A witness for each contestant: the report says how wrong the monitor was' -r -f -a "host\t'On this host, in the network of its contestant'
guest\t'In a guest of user-mode Linux of its own, where it reads this host\'s clock'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l router -d 'What stands between server and daemons where the plan has a router' -r -f -a "own\t'A program that lets each frame wait as long as the simulator\'s law says'
uml\t'A guest of user-mode Linux with netem'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l netem -d 'What netem does, in place of the plan: lines `SECONDS to|from WORDS...`, the words those of tc-netem(8)' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l guest -d 'What boots a guest of user-mode Linux: tests/uml/guest' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l peers -d 'Where the other daemons are: the wrappers of tools/peers, or a directory of the same names' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l output -d 'Where the results go; a run that is there already is not overwritten' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l resume -d 'Go on with the run of this directory, for what is left of its time' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from report" -l settle -d 'How long after each start errors do not count, in place of what the runs were begun with' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from report" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from report" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the plans: what the network does, and how often the daemons ask'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run daemons side by side, or go on with a run that was broken off'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from help" -f -a "report" -d 'Compare the daemons of one run, or of several repetitions'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand live; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l output -d 'Where the results go; the directory is made if it is missing' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l chronyd -d 'Synchronise to this chronyd as the server, which never touches the system clock, instead of the embedded reference server' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l ntpd -d 'Synchronise to this ntpd (of ntpsec) as the server, likewise' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l estimator -d 'The algorithm of the daemon' -r -f -a "classic\t'The algorithm of the RADclock papers'
learned\t'One-sided evidence, two directions and a bank of oscillators'"
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l poll -d 'Time between two requests' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l skew -d 'The true time\'s rate against the counter\'s nominal rate' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l wander -d 'The largest deviation of that rate from its mean' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l python -d 'The Python interpreter that draws the report; without one, only figures and data are written' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l before -d 'Seconds before the server is cut off' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l cut -d 'Seconds for which the server is cut off' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l after -d 'Seconds after the server has come back' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -f -a "liar" -d 'Synchronise to three servers, one of which begins to lie in the middle'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -f -a "serve" -d 'Serve the time on, through ffclock-serve and through chronyd on the same host, to chronyd, ntpd and ffclockd'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and not __fish_seen_subcommand_from liar serve help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l output -d 'Where the results go; the directory is made if it is missing' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l step -d 'The lie that the others\' intervals miss' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l inside -d 'The lie that stays within the others\' intervals' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l claim -d 'The largest error that an honest server claims of itself' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l false-claim -d 'The largest error that a liar claims of itself' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l poll -d 'Time between two requests' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l skew -d 'The true time\'s rate against the counter\'s nominal rate' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l wander -d 'The largest deviation of that rate from its mean' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l python -d 'The Python interpreter that draws the report; without one, only figures and data are written' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l before -d 'Seconds before the lie' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l after -d 'Seconds from then on' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from liar" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l output -d 'Where the results go; the directory is made if it is missing' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l chronyd -d 'The chronyd that is the reference, the other server of the host, and a client' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l ntpd -d 'An ntpd (of ntpsec) that is a client' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l before -d 'Seconds before the errors count' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l watch -d 'Seconds for which errors count' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l ask-every -d 'Time between two replies that are judged; none asks as fast as the servers answer, and disturbs the clients' -r
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from help" -f -a "liar" -d 'Synchronise to three servers, one of which begins to lie in the middle'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serve the time on, through ffclock-serve and through chronyd on the same host, to chronyd, ntpd and ffclockd'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand demo; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "replay" -d 'Run the estimator over a recorded trace'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "report" -d 'Draw a page that shows how well a clock did'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "sim" -d 'Run clocks in simulated worlds, with the truth known'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "counters" -d 'List and characterise the counters of this machine'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "probe" -d 'Measure where packets wait in this host, and what that does to a clock'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "owd" -d 'Measure one-way delays between hosts, each with a bound'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "theta" -d 'Measure how message delays between hosts correlate: the Theta-Model'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "live" -d 'Compare running daemons side by side, each with a clock of its own'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "demo" -d 'Synchronise to servers with a known time and show how well, in minutes'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and not __fish_seen_subcommand_from replay report sim counters probe owd theta live demo help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "list" -d 'Name the built-in scenarios'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "run" -d 'Run one scenario once'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "past" -d 'Show how old stamps and long intervals fare in one scenario'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "sweep" -d 'Run one scenario with many seeds'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "goals" -d 'Judge the learned estimator by its goals, over all scenarios and many seeds'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "campaign" -d 'Judge the strict bound in worlds of chance in which a minority of the servers lies'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from counters" -f -a "latency" -d 'Measure how long it takes to read each counter, in each way there is'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from counters" -f -a "stability" -d 'Measure how steadily the counters run, against one another and a reference'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from counters" -f -a "clock" -d 'Compare the clocks made from each counter and each kind of packet stamp, on the same packets'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from counters" -f -a "watch" -d 'Watch for counters that jump, stall, run backwards or lose the kernel\'s trust'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from counters" -f -a "show" -d 'Show a recording again'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from probe" -f -a "run" -d 'Send test packets to an echo server and stamp them at every location of this host'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from probe" -f -a "show" -d 'Show the tables of a record'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from probe" -f -a "advise" -d 'Say in plain words where to stamp on this host'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from probe" -f -a "watch" -d 'Watch the real traffic of a running UDP service'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from probe" -f -a "calibrate" -d 'Measure this host\'s own delays, for ffclockd to take them off its stamps'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from probe" -f -a "echo" -d 'Send test packets back'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from owd" -f -a "send" -d 'Send test packets to a reflector and measure the delay of each direction'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from owd" -f -a "reflect" -d 'Answer test packets with the times at which they came and left'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from owd" -f -a "report" -d 'Show the figures of a record, and draw it'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "analyse" -d 'Analyse how the delays in a log relate to each other: Omega, Theta and their parts'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "correlate" -d 'Test whether long and short delays go together'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "coverage" -d 'Hold the bounds that suit a calm run against a run under load: a timeout, or a ratio of delays'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "advise" -d 'Choose when a failure detector may suspect: by a timeout, or by a number of messages'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "check" -d 'Explore what the algorithm does under every fault'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "run" -d 'Run the algorithm live, on this machine or on several'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "rank" -d 'Run one process of a live run, started by mpirun, srun or another launcher'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "load" -d 'Keep network, processor or disk busy during a measurement'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "simulate" -d 'Run the algorithm in virtual time, where the truth is known'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "report" -d 'Draw histograms of the delays and ratios of a log, on one page'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "import" -d 'Make a log from a packet capture of another system\'s requests, or from a list of its messages'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "watch" -d 'Watch the messages of a running system: Omega of the last minute and of the run'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "taps" -d 'Compare a run of several hosts with captures of their links'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from theta" -f -a "why" -d 'Say why the ratio was largest: the slow message, its way and its siblings'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from live" -f -a "list" -d 'List the plans: what the network does, and how often the daemons ask'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from live" -f -a "run" -d 'Run daemons side by side, or go on with a run that was broken off'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from live" -f -a "report" -d 'Compare the daemons of one run, or of several repetitions'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from demo" -f -a "liar" -d 'Synchronise to three servers, one of which begins to lie in the middle'
complete -c ffclock-lab -n "__fish_ffclock_lab_using_subcommand help; and __fish_seen_subcommand_from demo" -f -a "serve" -d 'Serve the time on, through ffclock-serve and through chronyd on the same host, to chronyd, ntpd and ffclockd'
