# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ffclock_global_optspecs
    string join \n page= control= json h/help V/version
end

function __fish_ffclock_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ffclock_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ffclock_using_subcommand
    set -l cmd (__fish_ffclock_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ffclock -n "__fish_ffclock_needs_command" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_needs_command" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_needs_command" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock -n "__fish_ffclock_needs_command" -s V -l version -d 'Print version'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "now" -d 'Show the time with its bound'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "stamp" -d 'Take a raw stamp, to be converted later'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "at" -d 'Show the time of stamps that were taken earlier'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "elapsed" -d 'Measure how long a command takes, or the time between two stamps'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "status" -d 'Show the state of the daemon and its clock'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "sources" -d 'Show the servers and how each is doing'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "watch" -d 'Watch the clock live'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "wait" -d 'Wait until the clock is synchronised, or its bound small enough'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "reload" -d 'Have the daemon read its configuration again'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "doctor" -d 'Find what is wrong with the clock on this host'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "feed" -d 'Give the time to another clock daemon of this host'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "serve" -d 'Show the state of ffclock-serve, the NTP server'
complete -c ffclock -n "__fish_ffclock_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l format -d 'How the time is written' -r -f -a "iso\t'ISO 8601 with nanoseconds'
unix\t'Seconds since 1970-01-01 of the scale, with nine decimals, and nothing else'"
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l at -d 'Show the time of a stamp taken earlier with `ffclock stamp`, as `ffclock at` does' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l count -d 'How many readings to print' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l interval -d 'How long to wait between two readings' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l tai -d 'Show International Atomic Time instead of UTC'
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand now" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock -n "__fish_ffclock_using_subcommand stamp" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand stamp" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand stamp" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand stamp" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand at" -l format -d 'How the time is written' -r -f -a "iso\t'ISO 8601 with nanoseconds'
unix\t'Seconds since 1970-01-01 of the scale, with nine decimals, and nothing else'"
complete -c ffclock -n "__fish_ffclock_using_subcommand at" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand at" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand at" -l tai -d 'Show International Atomic Time instead of UTC'
complete -c ffclock -n "__fish_ffclock_using_subcommand at" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand at" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ffclock -n "__fish_ffclock_using_subcommand elapsed" -l output -d 'Write the figure for a command to this file instead of standard error' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand elapsed" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand elapsed" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand elapsed" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand elapsed" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand status" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand status" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand status" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand status" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand sources" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand sources" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand sources" -l why -d 'Show for each server whether it is believed, and why'
complete -c ffclock -n "__fish_ffclock_using_subcommand sources" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand sources" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand watch" -l interval -d 'How long to wait between two looks' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand watch" -l count -d 'Stop after this many looks' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand watch" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand watch" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand watch" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand watch" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand wait" -l bound -d 'Wait until the bound is at most this, whether warmed up or not; without it, until the clock is synchronised' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand wait" -l timeout -d 'How long to wait at most' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand wait" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand wait" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand wait" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand wait" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand reload" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand reload" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand reload" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand reload" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l bound -d 'A bound above this is a finding' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l config -d 'The daemon\'s configuration [default: where ffclockd looks]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l root -d 'Look at the system below this directory, such as that of a container' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l bundle -d 'Also write findings, state, configuration, log and the last day\'s recordings into an archive (tar) for a report' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l list -d 'Only show what is looked for'
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l chrony -d 'The socket of chronyd\'s SOCK reference clock' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l shm -d 'The unit of ntpd\'s shared memory (driver 28), which chronyd reads as well' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l clockbound -d 'The directory of ClockBound\'s segments' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l vmclock -d 'The file of a VMClock, which guests read' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l counter-offset -d 'The guest\'s counter minus this host\'s, for --vmclock' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l interval -d 'Time between two samples' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l bound -d 'No sample for --chrony and --shm while the bound is above this' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l slew -d 'How fast another program may slew the system clock, which ClockBound\'s clients of version 2 read' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l count -d 'End after this number of samples' -r
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand feed" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and not __fish_seen_subcommand_from status help" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and not __fish_seen_subcommand_from status help" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and not __fish_seen_subcommand_from status help" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and not __fish_seen_subcommand_from status help" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and not __fish_seen_subcommand_from status help" -f -a "status" -d 'Show what the server claims, and what it has answered and refused'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and not __fish_seen_subcommand_from status help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from status" -l socket -d 'The status socket of ffclock-serve' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from status" -l page -d 'The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from status" -l control -d 'The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]' -r -F
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from status" -l json -d 'Answer in JSON, one object a line'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show what the server claims, and what it has answered and refused'
complete -c ffclock -n "__fish_ffclock_using_subcommand serve; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "now" -d 'Show the time with its bound'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "stamp" -d 'Take a raw stamp, to be converted later'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "at" -d 'Show the time of stamps that were taken earlier'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "elapsed" -d 'Measure how long a command takes, or the time between two stamps'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "status" -d 'Show the state of the daemon and its clock'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "sources" -d 'Show the servers and how each is doing'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "watch" -d 'Watch the clock live'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "wait" -d 'Wait until the clock is synchronised, or its bound small enough'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "reload" -d 'Have the daemon read its configuration again'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "doctor" -d 'Find what is wrong with the clock on this host'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "feed" -d 'Give the time to another clock daemon of this host'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "serve" -d 'Show the state of ffclock-serve, the NTP server'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and not __fish_seen_subcommand_from now stamp at elapsed status sources watch wait reload doctor feed serve help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ffclock -n "__fish_ffclock_using_subcommand help; and __fish_seen_subcommand_from serve" -f -a "status" -d 'Show what the server claims, and what it has answered and refused'
