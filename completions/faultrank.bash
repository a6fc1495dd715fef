# bash completion of faultrank, written by 'faultrank completion bash'
_faultrank()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
    local options='' others='' files='' commands='diagnose check explain list search lint repro smoke completion version help'
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "$commands --help --version" -- "$cur"))
        return
    fi
    case "${COMP_WORDS[1]}" in
    diagnose)
        case "$prev" in
        --format|-f) COMPREPLY=($(compgen -W 'text json markdown html sarif junit github' -- "$cur")); return ;;
        --view) COMPREPLY=($(compgen -W 'engineer oncall executive' -- "$cur")); return ;;
        --output|-o) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --failures) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return ;;
        --threads|-j) COMPREPLY=(); return ;;
        esac
        options='--format --view --why --output --failures --exit-code --threads --timings --quiet --no-color --help'
        files=f
        ;;
    check)
        case "$prev" in
        --format|-f) COMPREPLY=($(compgen -W 'text json html sarif' -- "$cur")); return ;;
        --compare|-c) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --config) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --step) COMPREPLY=(); return ;;
        --max-abs) COMPREPLY=(); return ;;
        --allow-nan) COMPREPLY=(); return ;;
        --manifest) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --write-manifest) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --output|-o) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --threads|-j) COMPREPLY=(); return ;;
        esac
        options='--format --compare --replicas --config --step --max-abs --allow-nan --manifest --write-manifest --crc --all --output --threads --quiet --no-color --help'
        files=f
        ;;
    explain)
        case "$prev" in
        --format|-f) COMPREPLY=($(compgen -W 'text markdown json' -- "$cur")); return ;;
        --failures) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return ;;
        esac
        options='--format --brief --failures --no-color --help'
        others=$(faultrank list --ids 2>/dev/null)
        ;;
    list)
        case "$prev" in
        --category|-c) COMPREPLY=(); return ;;
        --format|-f) COMPREPLY=($(compgen -W 'text json' -- "$cur")); return ;;
        --failures) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return ;;
        esac
        options='--category --format --failures --ids --help'
        ;;
    search)
        case "$prev" in
        --format|-f) COMPREPLY=($(compgen -W 'text json' -- "$cur")); return ;;
        --failures) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return ;;
        esac
        options='--format --failures --help'
        ;;
    lint)
        case "$prev" in
        esac
        options='--quiet --help'
        files=d
        ;;
    repro)
        case "$prev" in
        --hidden) COMPREPLY=(); return ;;
        --scale) COMPREPLY=(); return ;;
        --policy) COMPREPLY=(); return ;;
        --loss-scale) COMPREPLY=(); return ;;
        --seed) COMPREPLY=(); return ;;
        --set) COMPREPLY=(); return ;;
        --svg) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --folder) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return ;;
        esac
        options='--hidden --scale --policy --loss-scale --seed --set --params --svg --json --folder --no-color --help'
        others=$(faultrank list --ids 2>/dev/null)
        ;;
    smoke)
        case "$prev" in
        --config|-c) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
        --hidden) COMPREPLY=(); return ;;
        --eps) COMPREPLY=(); return ;;
        --seq) COMPREPLY=(); return ;;
        --scale) COMPREPLY=(); return ;;
        --heads) COMPREPLY=(); return ;;
        --vocab) COMPREPLY=(); return ;;
        --padding) COMPREPLY=(); return ;;
        --dtype) COMPREPLY=(); return ;;
        --policy) COMPREPLY=(); return ;;
        --set) COMPREPLY=(); return ;;
        esac
        options='--config --hidden --eps --seq --scale --heads --vocab --padding --dtype --policy --set --facts --json --no-color --help'
        others=$(faultrank list --ids 2>/dev/null)
        ;;
    completion)
        case "$prev" in
        esac
        options='--help'
        others='bash zsh fish'
        ;;
    version)
        case "$prev" in
        esac
        options='--help'
        ;;
    help)
        case "$prev" in
        esac
        options='--help'
        others=$commands
        ;;
    esac
    case "$cur" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$cur")); return ;;
    esac
    if [ -n "$files" ]; then
        compopt -o filenames
        COMPREPLY=($(compgen -"$files" -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$others" -- "$cur"))
    fi
}
complete -F _faultrank faultrank
