// What DBeaver and Metabase ask a PostgreSQL server through its JDBC driver. Prints what it finds, one thing a line.

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;

public class Metadata {
    public static void main(String[] args) throws Exception {
        try (Connection connection = DriverManager.getConnection(args[0])) {
            DatabaseMetaData about = connection.getMetaData();
            System.out.println("product " + about.getDatabaseProductName());
            try (ResultSet tables = about.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"})) {
                while (tables.next()) {
                    System.out.println("table " + tables.getString("TABLE_NAME") + " " + tables.getString("TABLE_TYPE"));
                }
            }
            try (ResultSet columns = about.getColumns(null, "public", "clinic_flat", "%")) {
                while (columns.next()) {
                    System.out.println("column " + columns.getString("COLUMN_NAME") + " " + columns.getString("TYPE_NAME"));
                }
            }
            count("schemas", about.getSchemas());
            count("catalogs", about.getCatalogs());
            count("types", about.getTypeInfo());
            count("keys", about.getPrimaryKeys(null, "public", "clinic"));
            count("foreign", about.getImportedKeys(null, "public", "clinic"));
            count("indexes", about.getIndexInfo(null, "public", "clinic", false, true));
            connection.setReadOnly(true);
            connection.setAutoCommit(false);
            try (PreparedStatement question =
                    connection.prepareStatement("SELECT count(*) AS people, avg(age) AS age FROM clinic WHERE age > ? AND sex = ?")) {
                question.setLong(1, 30);
                question.setString(2, "F");
                // From the sixth time on, the driver asks for binary values.
                for (int i = 0; i < 8; i++) {
                    try (ResultSet answer = question.executeQuery()) {
                        answer.next();
                        System.out.println("answer " + answer.getLong(1) + " " + Math.round(answer.getDouble(2)));
                    }
                }
            }
            try (Statement statement = connection.createStatement()) {
                // In parts, by a portal that stays open.
                statement.setFetchSize(7);
                int rows = 0;
                try (ResultSet all = statement.executeQuery("SELECT * FROM clinic_flat")) {
                    ResultSetMetaData columns = all.getMetaData();
                    while (all.next()) {
                        rows++;
                    }
                    System.out.println("rows " + rows + " of " + columns.getColumnCount());
                }
            }
            connection.commit();
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("DELETE FROM clinic");
                System.out.println("deleted");
            } catch (SQLException error) {
                System.out.println("refused " + error.getSQLState());
            }
            connection.rollback();
        }
    }

    static void count(String what, ResultSet found) throws SQLException {
        int rows = 0;
        try (found) {
            while (found.next()) {
                rows++;
            }
        }
        System.out.println(what + " " + rows);
    }
}
