#!/bin/sh
# A worker in nothing but sh and curl: prepare → charge → finalize, with files in its volume as its record.
#
# It shows how little a worker has to do (docs/worker-contract.md). It reads the assignment with sed, which is enough
# for what killpoint writes there: names, numbers and ids, without escaped characters. What it cannot offer is the point
# charge.sent: curl has no place between writing a request and reading the answer.

set -eu

log=${KILLPOINT_TERMINATION_LOG:-/dev/termination-log}
volume=${KILLPOINT_VOLUME:-}

text() { # text NAME: the string of this name in the assignment
    printf '%s' "$KILLPOINT_ASSIGNMENT" | sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p'
}

number() { # number NAME: the whole number of this name in the assignment
    printf '%s' "$KILLPOINT_ASSIGNMENT" | sed -n 's/.*"'"$1"'" *: *\([0-9]*\).*/\1/p'
}

say() { # say LINE: append a line to the termination log; the outcome is the last one
    printf '%s\n' "$1" >>"$log"
}

fail() { # fail CLASS MESSAGE: end with a failed outcome
    say "{\"outcome\":\"failed\",\"error\":{\"class\":\"$1\",\"message\":\"$2\"}}"
    exit 1
}

schedule() { # schedule: what is scheduled, an entry a line
    printf '%s' "$KILLPOINT_ASSIGNMENT" | sed 's/.*"schedule" *: *\[\([^]]*\)\].*/\1/' | tr -d ' {' | tr '}' '\n' |
        grep -F '"point":' || true
}

scheduled() { # scheduled POINT: what the attempt is to do there, or nothing; each point is passed once here
    schedule | grep -F "\"point\":\"$1\"" | grep -E '"occurrence":1(,|$)' | sed -n 's/.*"do":"\([^"]*\)".*/\1/p'
}

passed() { # passed POINT: write its line, and end there as scheduled
    # Looked up before the line is written, so that nothing stands between the line and the end.
    case $(scheduled "$1") in
    die)
        say "{\"point\":\"$1\"}"
        kill -KILL $$
        exit 70
        ;;
    exit)
        say "{\"point\":\"$1\"}"
        exit 91
        ;;
    *) say "{\"point\":\"$1\"}" ;;
    esac
}

check_schedule() { # check_schedule: fail for what this worker cannot do, before anything is done
    if schedule | grep -Eqv '"do":"(die|exit)"'; then
        fail UnknownSchedule "this worker dies and exits at points, and does nothing else there"
    fi
}

keep() { # keep NAME VALUE: a file in the volume, there as a whole or not at all
    printf '%s\n' "$2" >"$volume/$1.new"
    mv "$volume/$1.new" "$volume/$1"
}

random() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

post() { # post PATH BODY [HEADER]: the answer's body; fails unless the status is 2xx
    curl --silent --show-error --fail --max-time 10 --header "Authorization: Bearer $KILLPOINT_TOKEN" \
        --header 'Content-Type: application/json' ${3:+--header "$3"} --data "$2" "$KILLPOINT_PAYMENTS_URL$1"
}

prepare() {
    passed prepare.before
    case $kind in
    stable) keep key "$run:charge" ;;
    saved-random) keep key "$(random)" ;;
    *) keep key '' ;;
    esac
    passed prepare.after
}

charge() {
    case $kind in
    none) key= ;;
    fresh) key=$(random) ;;
    stable | saved-random) key=$(cat "$volume/key") ;;
    derived) key=$run:charge ;;
    order) key=$order:charge ;;
    run-scoped) key=$run ;;
    *) fail UnknownKey "key $kind is unknown" ;;
    esac
    passed charge.before
    answer=$(post /v1/charges "{\"order\":\"$order\",\"amount\":$(number amount),\"currency\":\"$(text currency)\"}" \
        "${key:+Idempotency-Key: $key}") || fail PaymentsError "the charge was not answered with success"
    passed charge.after
    keep charge "$(printf '%s' "$answer" | sed -n 's/.*"id" *: *"\([^"]*\)".*/\1/p')"
    passed charge.recorded
}

finalize() {
    passed finalize.before
    post /v1/notifications "{\"order\":\"$order\",\"kind\":\"finalize\"}" >/dev/null ||
        fail PaymentsError "the notification was not answered with success"
    passed finalize.after
    keep done ''
}

finished() {
    effect=$(cat "$volume/charge")
    say "{\"outcome\":\"finished\",\"resumedFrom\":$resumed_from,\"claims\":[{\"action\":\"charge\",\"order\":\"$order\",\"effect\":\"$effect\"}]}"
}

carry_out() { # start or resume: each step whose record is there is not run again
    resumed_from=null
    if [ -e "$volume/done" ]; then
        finished
        return
    fi
    if [ -e "$volume/charge" ]; then
        resumed_from='"charge"'
    elif [ -e "$volume/key" ]; then
        resumed_from='"prepare"'
    fi
    [ -e "$volume/key" ] || prepare
    [ -e "$volume/charge" ] || charge
    finalize
    finished
}

inspect() {
    if [ -e "$volume/charge" ]; then found=true; else found=false; fi
    say "{\"outcome\":\"inspected\",\"recorded\":{\"charge\":$found}}"
}

describe() {
    points='"prepare.before","prepare.after","charge.before","charge.after","charge.recorded","finalize.before","finalize.after"'
    say "{\"outcome\":\"described\",\"worker\":\"shell\",\"points\":[$points],\"parameters\":{},\"versions\":{},\"does\":[\"die\",\"exit\"]}"
}

: >"$log"
say "{\"killpoint\":1,\"attempt\":\"$(text attempt)\",\"nonce\":\"$(text nonce)\"}"
run=$(text run) order=$(text id) kind=$(text key)
case $(text action) in
start | resume)
    check_schedule
    carry_out
    ;;
inspect) inspect ;;
describe) describe ;;
*) fail UnknownAction "this worker starts, resumes, inspects and describes" ;;
esac
