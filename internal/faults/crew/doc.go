// Package crew checks what workers in several processes (engine/worker) keep that share
// threads over a server: while the processes are killed, while one is cut off from the
// server, and while runs wait for people who answer through other processes.
//
// What tools do, and what effects are delivered, is written to a file that all processes
// append to: the outside world, in the order in which it happened. A check reads it
// behind them, and compares it with the store in the end.
package crew
