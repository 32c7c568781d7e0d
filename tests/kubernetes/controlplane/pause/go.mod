module regatta.test/pause

go 1.21
