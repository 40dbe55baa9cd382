package fuzzing

// The readers of what go test prints.
var (
	ReadList = readList
	ReadRuns = readRuns
	OnlyLate = onlyLate
)
