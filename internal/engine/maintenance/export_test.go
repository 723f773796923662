package maintenance

// Sweep is one sweep of Run.
var Sweep = Sessions.sweep
