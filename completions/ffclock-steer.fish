complete -c ffclock-steer -s c -l config -d 'The configuration file [default: /etc/ffclock/steer.toml if it is there]' -r -F
complete -c ffclock-steer -l page -d 'Read the page at this place, regardless of the configuration' -r -F
complete -c ffclock-steer -l log -d 'What to log: error, warn, info, debug or trace, or a filter such as "ffclock_steer=debug"' -r
complete -c ffclock-steer -l dry-run -d 'Print what would be done, and change nothing. Needs no right'
complete -c ffclock-steer -l once -d 'Set rate, error figures and flags once, with the step if it is permitted, and exit. An offset that is left is not slewed'
complete -c ffclock-steer -l check-config -d 'Read the configuration, report what is wrong with it, and exit'
complete -c ffclock-steer -l log-json -d 'Log JSON lines instead of text'
complete -c ffclock-steer -s h -l help -d 'Print help'
complete -c ffclock-steer -s V -l version -d 'Print version'
