complete -c ffclock-serve -s c -l config -d 'The configuration file [default: /etc/ffclock/serve.toml if it is there, or none with --listen]' -r -F
complete -c ffclock-serve -s l -l listen -d 'Listen here instead of at the addresses of the configuration; may be given several times' -r
complete -c ffclock-serve -l page -d 'Read the page at this place, regardless of the configuration' -r -F
complete -c ffclock-serve -l log -d 'What to log: error, warn, info, debug or trace, or a filter such as "ffclock_serve=debug"' -r
complete -c ffclock-serve -l check-config -d 'Read the configuration, report what is wrong with it, and exit'
complete -c ffclock-serve -l log-json -d 'Log JSON lines instead of text'
complete -c ffclock-serve -s h -l help -d 'Print help'
complete -c ffclock-serve -s V -l version -d 'Print version'
