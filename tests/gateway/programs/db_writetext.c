/* db_writetext SERVER USER PASSWORD FILE: writes a text and an image by DB-Library's pointers to them, the text in
 * parts, and prints the columns afterwards. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sybfront.h>
#include <sybdb.h>

static int on_message(DBPROCESS *dbproc, DBINT number, int state, int severity, char *text, char *server,
                      char *procedure, int line)
{
	(void) dbproc, (void) state, (void) server, (void) procedure, (void) line;
	if (severity > 10)
		printf("error %d %s\n", (int) number, text);
	return 0;
}

static int on_error(DBPROCESS *dbproc, int severity, int number, int os_error, char *text, char *os_text)
{
	(void) dbproc, (void) severity, (void) os_error, (void) os_text;
	printf("client error %d %s\n", number, text);
	return INT_CANCEL;
}

static void run(DBPROCESS *dbproc, const char *text)
{
	dbcmd(dbproc, text);
	dbsqlexec(dbproc);
	while (dbresults(dbproc) == SUCCEED)
		while (dbnextrow(dbproc) != NO_MORE_ROWS)
			for (int column = 1; column <= dbnumcols(dbproc); column++)
				printf("%.*s\n", (int) dbdatlen(dbproc, column), (char *) dbdata(dbproc, column));
}

/* the pointer to the column of the first row */
static void find(DBPROCESS *dbproc, const char *text, DBBINARY *pointer, DBBINARY *timestamp)
{
	dbcmd(dbproc, text);
	dbsqlexec(dbproc);
	dbresults(dbproc);
	dbnextrow(dbproc);
	memcpy(pointer, dbtxptr(dbproc, 1), DBTXPLEN);
	memcpy(timestamp, dbtxtimestamp(dbproc, 1), 8);
	while (dbnextrow(dbproc) != NO_MORE_ROWS)
		;
	dbcanquery(dbproc);
	while (dbresults(dbproc) == SUCCEED)
		;
}

int main(int argc, char **argv)
{
	DBBINARY pointer[DBTXPLEN], timestamp[8];
	static BYTE part[5000];
	if (argc != 4 || dbinit() == FAIL)
		return 2;
	dbmsghandle(on_message);
	dberrhandle(on_error);
	LOGINREC *login = dblogin();
	DBSETLUSER(login, argv[2]);
	DBSETLPWD(login, argv[3]);
	DBPROCESS *dbproc = dbopen(login, argv[1]);
	if (!dbproc)
		return 1;
	run(dbproc, "create table #t (k int, a text, b image) insert #t values (1, 'before', 0x00)");
	find(dbproc, "select a from #t", pointer, timestamp);
	memset(part, 'x', sizeof part);
	dbwritetext(dbproc, "#t.a", pointer, DBTXPLEN, timestamp, TRUE, 3 * sizeof part, NULL);
	dbsqlok(dbproc);
	dbresults(dbproc);
	for (int i = 0; i < 3; i++)
		dbmoretext(dbproc, sizeof part, part);
	dbsqlok(dbproc);
	while (dbresults(dbproc) == SUCCEED)
		;
	find(dbproc, "select b from #t", pointer, timestamp);
	dbwritetext(dbproc, "#t.b", pointer, DBTXPLEN, timestamp, FALSE, 4, (BYTE *) "\001\002\377\000");
	run(dbproc, "select convert(varchar(20), datalength(a)), convert(varchar(20), substring(a, 1, 3)), "
		    "convert(varchar(20), datalength(b)), convert(varchar(20), charindex('y', a)) from #t");
	run(dbproc, "select case when convert(varbinary(10), b) = 0x0102ff00 then 'same' else 'other' end from #t");
	/* the row is another by now */
	run(dbproc, "update #t set k = 2");
	dbwritetext(dbproc, "#t.b", pointer, DBTXPLEN, timestamp, FALSE, 1, (BYTE *) "z");
	dbexit();
	return 0;
}
