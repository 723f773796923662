package heartbeat

// StepOf does what is due once.
var StepOf = (*Service).step
